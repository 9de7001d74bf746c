"""The FastAPI application of a service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from adapters.ports import Unavailable
from app.bootstrap import Service
from app.http import (
    document,
    models_cells,
    models_hosts,
    problems,
    routes_cells,
    routes_hosts,
    routes_log,
    routes_service,
)
from app.http.bodies import InvalidForm, form_errors
from app.http.envelope import Envelope
from domain.refusals import Refusal

VERSION = "1"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FORMS = (
    models_cells.InventoryForm,
    models_cells.ConfigurationForm,
    models_cells.AdmissionForm,
    models_cells.EnabledForm,
    models_cells.HeartbeatForm,
    models_cells.RehomeStatusForm,
    models_cells.RenewalsForm,
    models_hosts.AssignForm,
    models_hosts.VerificationForm,
    models_hosts.TargetForm,
    models_hosts.ActivityCountForm,
    models_hosts.ActivityForm,
    models_hosts.ReleaseForm,
    models_hosts.RenewForm,
    models_hosts.ControlForm,
)


def create_app(service: Service) -> FastAPI:
    """The application; its lifespan is the service's."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service:
            yield

    app = FastAPI(
        title="Tenure",
        version=VERSION,
        description="Who holds what, where, and since when.",
        lifespan=lifespan,
        redirect_slashes=False,
        # `/metrics` and the log's meta tell more, and asking for providers costs 5 % a request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers={
            Refusal: _refused,
            Unavailable: _unavailable,
            RequestValidationError: _invalid,
            HTTPException: _not_routed,
        },
    )
    app.state.service = service
    forms: tuple[Any, ...] = FORMS
    for routes in (routes_hosts, routes_cells, routes_log, routes_service):
        # Side by side: an included router would be asked first, and then its routes again.
        app.router.routes.extend(routes.router.routes)
    if service.settings.clock == "virtual":
        app.include_router(routes_service.virtual_clock_router)
        forms = (*FORMS, routes_service.ClockForm)
    app.add_middleware(
        Envelope,
        telemetry=service.telemetry,
        ids=service.ids,
        access_lines=service.settings.log_level == "debug",
    )
    _document(app, forms)
    return app


def _document(app: FastAPI, forms: tuple[Any, ...]) -> None:
    """Let `/openapi.json` and `/docs` show the whole document, made once."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document.document(app, forms)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _answer(
    request: Request,
    refusal: Refusal,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, object] | None = None,
) -> Response:
    path, request_id = request.url.path, request.state.request_id
    return problems.problem_response(refusal, path, request_id, headers, more)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    more = {"errors": error.errors} if isinstance(error, InvalidForm) else None
    return _answer(request, error, more=more)


async def _unavailable(request: Request, _: Exception) -> Response:
    return _answer(request, problems.LogUnavailable())


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _answer(request, problems.InvalidRequest(), more={"errors": form_errors(error.errors())})


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _answer(request, problems.RouteNotFound())
    if error.status_code == 405:
        return _answer(request, problems.MethodNotAllowed(), {"Allow": _allowed(request)})
    raise error


def _allowed(request: Request) -> str:
    """The methods of every route at this path, not only of the first."""
    app, scope = request.app, request.scope
    return ", ".join(
        sorted(method for method in METHODS if _fits(app, {**scope, "method": method}))
    )


def _fits(app: FastAPI, scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in app.routes)
