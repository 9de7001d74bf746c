"""Operations that change nothing in the log: how new the answer must be, and how new it is."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Generic, TypeVar

import orjson
from fastapi import Query as InQuery
from starlette.types import ASGIApp

from app.bootstrap import Service
from app.http.access import Roles
from app.http.call import Call
from app.http.declaration import NO_BODY, Body, Endpoint, NoParameters, Parameters, taken
from app.http.problems import LogUnavailable, PositionNotReached
from app.http.reply import JSON, Reply
from domain.limits import SAFE_INTEGER_MAX
from domain.refusals import Refusal

WAIT_MS_MAX = 10_000

P = TypeVar("P", bound=Parameters)
Q = TypeVar("Q", bound=Parameters)
F = TypeVar("F")


class AtPosition(Parameters):
    """How new an answer must be."""

    min_position: Annotated[
        int | None,
        InQuery(
            ge=0,
            le=SAFE_INTEGER_MAX,
            description="Answer only from a state that includes this log position.",
        ),
    ] = None
    wait_ms: Annotated[
        int,
        InQuery(
            ge=0, le=WAIT_MS_MAX, description="How long to wait for min_position, milliseconds."
        ),
    ] = 0


@dataclass(frozen=True, slots=True)
class Asked(Generic[P, Q, F]):
    """What an allowed caller asks of a query."""

    service: Service
    path: P
    query: Q
    form: F
    header: Callable[[bytes], str | None]
    allow: Callable[[], Awaitable[None]]
    """Asks again whether the caller may: an answer without end must. Refuses as at first."""


@dataclass(frozen=True)
class Query(Endpoint, Generic[P, Q, F]):
    """A question that `ask` answers, from a state as new as was asked for."""

    _: KW_ONLY
    path: type[P] = NoParameters  # type: ignore[assignment]  # `ask` says the type
    query: type[Q] = NoParameters  # type: ignore[assignment]
    body: Body[F] = NO_BODY  # type: ignore[assignment]
    roles: Roles[P, F]
    ask: Callable[[Asked[P, Q, F]], Awaitable[ASGIApp]]

    async def reply(self, call: Call) -> ASGIApp:
        service = call.service
        caller = await call.caller(self.roles) if self.roles else None
        path = taken(self.path, call.parameters, "path")
        # Where nothing can be asked, whatever is asked is harmless: health checks vary their URLs.
        told = call.query(self.query.model_fields) if self.takes_parameters or self.roles else {}
        query = taken(self.query, told, "query")
        body = (
            await call.body(self.body.bytes_max(service.settings)) if self.body.forms else b"null"
        )
        form = self.body.parse(body)
        if caller is not None:
            await caller.require_bound(self.roles, path, form, service.reads)
        if isinstance(query, AtPosition):
            await _reached(service, query.min_position, query.wait_ms)

        async def allow() -> None:
            await call.caller(self.roles)

        return await self.ask(Asked(service, path, query, form, call.header, allow))

    @property
    def more_refusals(self) -> tuple[type[Refusal], ...]:
        if issubclass(self.query, AtPosition):
            return (PositionNotReached, LogUnavailable)
        return ()


async def _reached(service: Service, min_position: int | None, wait_ms: int) -> None:
    """Wait until the log goes to `min_position`. Refuses `position_not_reached`."""
    if min_position is None or service.tail.position >= min_position:
        return
    service.tail.saw((await service.reads.head()).position)
    if not await service.tail.beyond(min_position - 1, wait_ms / 1_000):
        raise PositionNotReached(min_position=min_position, position=service.tail.position)


def answered(value: object, position: int, headers: Iterable[tuple[str, str]] = ()) -> Reply:
    """The answer to a question, with the position it is true for; kept by nobody unless told."""
    sent = {"log-position": str(position), "cache-control": "no-store", **dict(headers)}
    raw = [(name.encode(), told.encode()) for name, told in sent.items()]
    return Reply(200, [*raw, JSON], orjson.dumps(value))
