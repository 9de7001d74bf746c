"""The virtual clock, where there is one."""

from typing import Annotated

from pydantic import Field

from adapters.clock import VirtualClock
from app.http.access import OPERATOR
from app.http.declaration import PUT, Body, NoParameters
from app.http.models import EpochMs, Form, examples
from app.http.problems import ClockGoesBack
from app.http.query import Asked, Query
from app.http.reply import Reply

CLOCK_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999, the last that RFC 3339 can say."""


class ClockForm(Form):
    """A time to set the virtual clock to."""

    model_config = examples({"now_ms": 1_754_000_000_000})

    now_ms: Annotated[EpochMs, Field(le=CLOCK_MS_MAX)]


async def set_clock(asked: Asked[NoParameters, NoParameters, ClockForm]) -> Reply:
    wanted, clock = asked.form.now_ms, asked.service.clock
    assert isinstance(clock, VirtualClock)
    if wanted < clock.now_ms():
        raise ClockGoesBack(now_ms=clock.now_ms())
    clock.set(wanted)
    return Reply(204, ())


SET_CLOCK = Query(
    "SetClock",
    PUT,
    "/v1/clock",
    tag="service",
    summary="Set the virtual clock; it never goes back",
    body=Body(ClockForm),
    roles=OPERATOR,
    ask=set_clock,
    refusals=(ClockGoesBack,),
)
"""No command: the log knows nothing of it."""
