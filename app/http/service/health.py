"""The service itself: health, metrics, the problems' pages."""

from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from fastapi import Path
from fastapi import Query as InQuery
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from app.health import Check, checks
from app.http import problems
from app.http.access import ANYONE
from app.http.declaration import GET, Answer, Endpoint, NoParameters, Parameters
from app.http.query import Asked, Query
from app.http.reply import JSON, Reply

CODE_LENGTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service takes requests; the checks only when asked for."""

    ready: bool
    checks: list[Check] | None = None


class Verbosity(Parameters):
    """How much to tell."""

    verbose: Annotated[
        Literal["", "true", "false"] | None, InQuery(description="List the checks.")
    ] = None


class CodePath(Parameters):
    """A problem's code."""

    code: Annotated[str, Path(max_length=CODE_LENGTH_MAX)]


async def live(_: Asked[NoParameters, NoParameters, None]) -> Reply:
    return _text("text/plain; charset=utf-8", b"alive")


async def ready(asked: Asked[NoParameters, Verbosity, None]) -> Reply:
    listed = await checks(asked.service)
    passed = all(check.passed for check in listed)
    shown = Readiness(passed, listed if asked.query.verbose in ("", "true") else None)
    headers = [JSON, (b"cache-control", b"no-store")]
    return Reply(200 if passed else 503, headers, orjson.dumps(shown))


async def metrics(asked: Asked[NoParameters, NoParameters, None]) -> Reply:
    return _text(CONTENT_TYPE_LATEST, generate_latest(asked.service.telemetry.registry))


async def read_problem(asked: Asked[CodePath, NoParameters, None]) -> Reply:
    refusal = problems.BY_CODE.get(asked.path.code)
    if refusal is None:
        raise problems.RouteNotFound
    return _text("text/html; charset=utf-8", problems.page(refusal).encode())


def _text(content_type: str, text: bytes) -> Reply:
    return Reply(200, [(b"content-type", content_type.encode())], text)


READY = {"ready": True, "checks": [{"name": "database", "passed": True, "detail": "answers"}]}

OPERATIONS: tuple[Endpoint, ...] = (
    Query(
        "Live",
        GET,
        "/livez",
        tag="service",
        summary="Whether the process answers at all; never touches the database",
        roles=ANYONE,
        ask=live,
        answer=Answer("It does.", example="alive", media_type="text/plain"),
    ),
    Query(
        "Ready",
        GET,
        "/readyz",
        tag="service",
        summary="Whether the service takes requests",
        query=Verbosity,
        roles=ANYONE,
        ask=ready,
        answer=Answer("It does.", model=Readiness, example=READY),
        other_answers=(Answer("It does not.", 503, model=Readiness, example={"ready": False}),),
    ),
    Query(
        "Metrics",
        GET,
        "/metrics",
        tag="service",
        summary="What the process counts about itself, as Prometheus text",
        roles=ANYONE,
        ask=metrics,
        answer=Answer("The metrics.", media_type="text/plain"),
    ),
    Query(
        "ReadProblem",
        GET,
        "/problems/{code}",
        tag="service",
        summary="What a problem's code means",
        path=CodePath,
        roles=ANYONE,
        ask=read_problem,
        answer=Answer("A page for people.", media_type="text/html"),
        refusals=(problems.RouteNotFound,),
    ),
)
