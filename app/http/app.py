"""The FastAPI application of a service."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from app.bootstrap import Service
from app.http.declaration import Endpoint
from app.http.document import document
from app.http.edge import Edge
from app.http.envelope import Envelope
from app.http.surface import endpoints

VERSION = "1"


class Application(FastAPI):
    """FastAPI tells what the endpoints are; they are called without it.

    Its middleware, routing and dependencies would cost more than all that a command needs.
    """

    def __init__(self, service: Service, surface: Sequence[Endpoint]) -> None:
        @asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            async with service:
                yield

        super().__init__(
            title="Tenure",
            version=VERSION,
            description="Who holds what, where, and since when.",
            lifespan=lifespan,
            redirect_slashes=False,
            # `/metrics` and the log's meta tell more, and asking for providers costs time.
            telemetry={"tracing": False, "metrics": False, "logs": False},
        )
        self._service = service
        self._surface = surface

    def build_middleware_stack(self) -> ASGIApp:
        service = self._service
        return Envelope(
            Edge(service, self._surface, self.router),
            telemetry=service.telemetry,
            ids=service.ids,
            access_lines=service.settings.log_level == "debug",
        )

    def openapi(self) -> dict[str, Any]:
        """The whole document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = document(self, self._surface)
        return self.openapi_schema


def create_app(service: Service) -> Application:
    """The application; its lifespan is the service's."""
    return Application(service, endpoints(service.settings))
