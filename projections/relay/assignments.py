"""Who is where: each host's cell, epoch and counters."""

from domain.relay.assignment import HeldEvent
from domain.relay.decide import EVENTS
from projections.table import Projection, Rows, Table

ASSIGNMENTS = Table(
    "assignments",
    2,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "cell_id": "text",
        "epoch": "bigint",
        "controls": "bigint",
        "splices": "bigint",
        "invites": "bigint",
        "installs": "bigint",
        "confirmations": "bigint",
        "migrations": "bigint",
    },
)


def _held(event: HeldEvent, _: int, __: int, rows: Rows) -> None:
    rows.put(
        ASSIGNMENTS,
        event.user_id,
        event.relay_host_id,
        event.cell_id,
        event.epoch,
        *event.counts,
    )


PROJECTION = Projection(
    "assignments",
    1,
    (ASSIGNMENTS,),
    {event: _held for event in EVENTS if issubclass(event, HeldEvent)},
)
