"""The service itself: health, metrics, sweeps, the virtual clock, the problems' pages."""

from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Path, Query
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from adapters.clock import VirtualClock
from adapters.ports import Unavailable
from app import sweeps
from app.health import Check, checks
from app.http import access, problems
from app.http.commands import Call, service_of
from app.http.document import DONE, Answer, Described, operation
from app.http.models import EpochMs, Form, examples
from app.writer import QueueFull
from domain import refusals

CODE_LENGTH_MAX = 64
CLOCK_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999, the last that RFC 3339 can say."""

router = APIRouter()
virtual_clock_router = APIRouter()


@dataclass(frozen=True, slots=True)
class Settled:
    """How much a sweep settled."""

    settled: int


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service takes requests; the checks only when asked for."""

    ready: bool
    checks: list[Check] | None = None


class ClockForm(Form):
    """A time to set the virtual clock to."""

    model_config = examples({"now_ms": 1_754_000_000_000})

    now_ms: Annotated[EpochMs, Field(le=CLOCK_MS_MAX)]


CLOCK = TypeAdapter(ClockForm)
READY = {"ready": True, "checks": [{"name": "database", "passed": True, "detail": "answers"}]}


@router.get(
    "/livez",
    **operation(
        Described(
            "Live",
            "Whether the process answers at all; never touches the database",
            "service",
            (Answer("It does.", example="alive", media_type="text/plain"),),
            takes_parameters=False,
        )
    ),
)
async def live() -> Response:
    return Response("alive", media_type="text/plain")


@router.get(
    "/readyz",
    **operation(
        Described(
            "Ready",
            "Whether the service takes requests",
            "service",
            (
                Answer("It does.", model=Readiness, example=READY),
                Answer("It does not.", 503, model=Readiness, example={"ready": False}),
            ),
        )
    ),
)
async def ready(
    request: Request,
    verbose: Annotated[
        Literal["", "true", "false"] | None, Query(description="List the checks.")
    ] = None,
) -> Response:
    listed = await checks(service_of(request))
    passed = all(check.passed for check in listed)
    shown = Readiness(passed, listed if verbose in ("", "true") else None)
    headers = {"Cache-Control": "no-store"}
    media_type = "application/json"
    return Response(orjson.dumps(shown), 200 if passed else 503, headers, media_type)


@router.get(
    "/metrics",
    **operation(
        Described(
            "Metrics",
            "What the process counts about itself, as Prometheus text",
            "service",
            (Answer("The metrics.", media_type="text/plain"),),
            takes_parameters=False,
        )
    ),
)
async def metrics(request: Request) -> Response:
    body = generate_latest(service_of(request).telemetry.registry)
    return Response(body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get(
    "/problems/{code}",
    **operation(
        Described(
            "ReadProblem",
            "What a problem's code means",
            "service",
            (Answer("A page for people.", media_type="text/html"),),
            refusals=(problems.RouteNotFound,),
        )
    ),
)
async def read_problem(code: Annotated[str, Path(max_length=CODE_LENGTH_MAX)]) -> Response:
    refusal = problems.BY_CODE.get(code)
    if refusal is None:
        raise problems.RouteNotFound
    return Response(problems.page(refusal), media_type="text/html")


@router.post(
    "/v1/sweeps/{sweep}",
    **operation(
        Described(
            "Sweep",
            "Take back what nobody renewed, until nothing is due",
            "service",
            (Answer("How much was settled.", model=Settled, example={"settled": 12}),),
            access.OPERATOR,
            refusals=(refusals.RelayCapacityExhausted,),
            command=True,
        )
    ),
)
async def run_sweep(
    request: Request, sweep: Literal["activity-leases", "activity", "region-preferences"]
) -> Response:
    call = await Call.of(request)
    call.caller.require_role(access.OPERATOR)
    try:
        outcome = await sweeps.run(
            call.service.writer, sweep, call.meta, call.key, call.fingerprint
        )
    except QueueFull:
        raise problems.CommandQueueFull from None
    except Unavailable:
        raise problems.LogUnavailable from None
    return call.answer(outcome, _settled)


def _settled(count: int) -> Settled:
    return Settled(count)


@virtual_clock_router.put(
    "/v1/clock",
    **operation(
        Described(
            "SetClock",
            "Set the virtual clock; it never goes back",
            "service",
            (DONE,),
            access.OPERATOR,
            (ClockForm,),
            (problems.ClockGoesBack,),
        )
    ),
)
async def set_clock(request: Request) -> Response:
    call = await Call.of(request)
    call.caller.require_role(access.OPERATOR)
    body, clock = await call.body(CLOCK), call.service.clock
    assert isinstance(clock, VirtualClock)
    if body.now_ms < clock.now_ms():
        raise problems.ClockGoesBack(now_ms=clock.now_ms())
    clock.set(body.now_ms)
    return Response(None, 204)
