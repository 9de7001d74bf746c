"""What each cell holds: units by counters, units by leases, outstanding connections.

Decisions read it, so it is written in their own transaction and must always equal the fold.
"""

from domain.relay.assignment import AssignmentEvent
from domain.relay.cell import CellRegistered
from domain.relay.decide import EVENTS
from projections.table import Projection, Rows, Table

CELL_RESERVATIONS = Table(
    "cell_reservations",
    1,
    {
        "cell_id": "text",
        "reserved_units": "bigint",
        "leased_units": "bigint",
        "connections": "bigint",
    },
)


def _registered(event: CellRegistered, _: int, __: int, rows: Rows) -> None:
    rows.put(CELL_RESERVATIONS, event.cell_id, 0, 0, 0)


def _shifted(event: AssignmentEvent, _: int, __: int, rows: Rows) -> None:
    for cell_id, _units, reserved, leased, connections in event.shifts:
        rows.put(CELL_RESERVATIONS, cell_id, reserved, leased, connections)


PROJECTION = Projection(
    "cell_reservations",
    1,
    (CELL_RESERVATIONS,),
    {
        CellRegistered: _registered,
        **{event: _shifted for event in EVENTS if issubclass(event, AssignmentEvent)},
    },
)
