"""One sample of every event, as it is stored.

    python -m tests.golden.samples

writes the samples that are missing, and never touches one that exists: a stored event stays
readable for ever. An event that changes gets a version, an upcaster and a new sample beside the
old one.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from adapters.entry import Meta
from adapters.mapper import write_meta, write_state
from domain.events import Event
from domain.relay.activity import (
    ActivityAcquired,
    ActivityCounted,
    ActivityExpired,
    ActivityReleased,
    CountsExpired,
)
from domain.relay.assignment import Counts, Lease, Opened, Shift
from domain.relay.cell import (
    AdmissionSelectorOpened,
    CellAdmissionChanged,
    CellReconfigured,
    CellRegistered,
    CellStarted,
)
from domain.relay.connection import ConnectionsLapsed, ConnectionsReleased
from domain.relay.control import Claimed, ControlActivated
from domain.relay.placement import ControlRegranted, HostPlaced

FOLDER = Path(__file__).parent / "events"
META = Meta("command-1", "tester", "correlation-1", "causation-1", "trace-1")
AT = 1_750_000_000_000
USER = 'ada "ü" \\ 🛰'
SHIFT = Shift("cell-a", 2, 5, 4, 1)
SPLICE = Lease("splice", "cell-a", 2)
CONTROL = Lease("control", "cell-a", 1)
COUNTS = Counts(1, 2, 3, 4, 5, 6)

EVENTS: tuple[Event, ...] = (
    HostPlaced(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(Shift("cell-b", -3, 0, 0, 0), SHIFT),
        cell_id="cell-a",
        epoch=2,
        counts=Counts(1),
        reason="stranded",
        previous_cell_id="cell-b",
        region="asia-east2",
        candidates=(("cell-a", 3, 1, 10), ("cell-c", 4, 0, 8)),
        more_candidates=2,
        activity_id="control-pending:2",
        lease=CONTROL,
        dropped_activity_ids=("control-pending:1",),
        connection=Opened(3, AT + 90_000),
        released_connections=(1, 2),
        last_activity_seen_at=AT - 60_000,
        last_heartbeat_seen_at=AT - 1_000,
    ),
    ControlRegranted(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=COUNTS,
        activity_id="control-pending:2",
        lease=CONTROL,
        connection=Opened(4, AT + 90_000),
    ),
    ActivityAcquired(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=COUNTS,
        activity_id="splice:1",
        lease=SPLICE,
        converted_from=Lease("invite", "cell-b", 1),
    ),
    ActivityReleased(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=COUNTS,
        activity_id="splice:1",
        lease=SPLICE,
    ),
    ActivityExpired(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=COUNTS,
        activity_id="splice:1",
        lease=SPLICE,
        deadline_at=AT - 1,
    ),
    ActivityCounted(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=COUNTS,
        kind="confirmation",
        delta=-1,
    ),
    CountsExpired(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=Counts(),
        expired=COUNTS,
        deadline_at=AT,
    ),
    ControlActivated(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        cell_id="cell-a",
        epoch=2,
        counts=COUNTS,
        activity_id="control:cell-a:7",
        generation=7,
        lease=CONTROL,
        renamed_from="control-pending:2",
        superseded_activity_ids=("control:cell-a:6",),
        cell_incarnation="incarnation-1",
        idle_regional_rehome=True,
        forgotten_controls=("control:cell-b:1",),
        reclaimed_connections=(1,),
        claimed_connection=Claimed(2, 41),
    ),
    ConnectionsLapsed(
        at=AT, user_id=USER, relay_host_id="host-1", shifts=(SHIFT,), connections=(3, 4)
    ),
    ConnectionsReleased(
        at=AT,
        user_id=USER,
        relay_host_id="host-1",
        shifts=(SHIFT,),
        connections=(3, 4),
        reason="duplicate_debt",
    ),
    CellRegistered(
        at=AT,
        cell_id="cell-a",
        cell_url="https://cell-a.relay.test",
        region="us-central1",
        capacity_units=1_000,
        hard_cap_connections=600,
        unobserved_bound_connections=50,
        admission="general",
    ),
    CellReconfigured(
        at=AT,
        cell_id="cell-a",
        cell_url="https://tagged.cell-a.relay.test",
        region="asia-east2",
        capacity_units=2_000,
        hard_cap_connections=None,
        unobserved_bound_connections=None,
    ),
    CellAdmissionChanged(
        at=AT,
        cell_id="cell-a",
        before="migration-only",
        admission="existing-only",
        reason="missing_from_inventory",
    ),
    CellStarted(
        at=AT,
        cell_id="cell-a",
        cell_incarnation="incarnation-2",
        started_at=AT - 5,
        previous_incarnation="incarnation-1",
    ),
    AdmissionSelectorOpened(at=AT),
)


def sample_path(event: Event | type[Event]) -> Path:
    return FOLDER / f"{event.topic}.v{event.version}.json"


def stored(event: Event) -> str:
    """The sample of an event: exactly the state that the log would hold."""
    return write_state(event, write_meta(META))


def write_missing(events: Sequence[Event] = EVENTS, folder: Path = FOLDER) -> list[Path]:
    """Write the samples that do not exist; answers which."""
    written = []
    for event in events:
        path = folder / sample_path(event).name
        if not path.exists():
            path.write_text(stored(event))
            written.append(path)
    return written


if __name__ == "__main__":
    for written_path in write_missing():
        sys.stdout.write(f"{written_path.name}\n")
