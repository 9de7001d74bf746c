"""A request that only reads: how new the answer must be, and how new it is."""

from typing import Annotated, Any

import orjson
from fastapi import Query
from starlette.responses import Response

from app.bootstrap import Service
from app.http.problems import PositionNotReached
from domain.limits import SAFE_INTEGER_MAX

WAIT_MS_MAX = 10_000

MinPosition = Annotated[
    int | None,
    Query(
        ge=0,
        le=SAFE_INTEGER_MAX,
        description="Answer only from a state that includes this log position.",
    ),
]
WaitMs = Annotated[
    int,
    Query(ge=0, le=WAIT_MS_MAX, description="How long to wait for min_position, milliseconds."),
]


async def reached(service: Service, min_position: int | None, wait_ms: int) -> None:
    """Wait until the log goes to `min_position`. Refuses `position_not_reached`."""
    if min_position is None or service.tail.position >= min_position:
        return
    service.tail.saw((await service.reads.head()).position)
    if not await service.tail.beyond(min_position - 1, wait_ms / 1_000):
        raise PositionNotReached(min_position=min_position, position=service.tail.position)


def answered(
    value: Any, position: int, headers: dict[str, str] | None = None, media_type: str | None = None
) -> Response:
    """The answer to a question, with the position it is true for."""
    sent = {"Log-Position": str(position), "Cache-Control": "no-store", **(headers or {})}
    return Response(orjson.dumps(value), 200, sent, media_type or "application/json")
