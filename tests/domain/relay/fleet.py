"""Cells, hosts and reports to tell scenarios with. Times are epoch ms."""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.events import Event
from domain.ids import HostId, pending_control_id
from domain.limits import DEFAULT_REGION, Region
from domain.relay.activity import ActivityAcquired, ActivityReleased
from domain.relay.assignment import Counts, Lease, Opened, Shift
from domain.relay.cell import Admission, CellAdmissionChanged, CellRegistered, CellStarted
from domain.relay.heartbeat import NO_CONNECTIONS, ConnectionReport, RecordHeartbeat
from domain.relay.placement import HostPlaced
from domain.relay.runtime import (
    CellRuntime,
    Deadline,
    Heartbeat,
    Telemetry,
    TouchDeadline,
    TouchLiveness,
    TouchRuntime,
)
from domain.relay.turn import Load

HOST = HostId("ada", "desktop")
OTHER = HostId("bob", "laptop")
THIRD = HostId("cleo", "tower")

DAY = 86_400_000
LEASE = 90_000
TTL = 45_000
PENDING = "control-pending:1"
NONE_COUNTED = Counts()


def url(cell_id: str) -> str:
    return f"https://{cell_id}.relay.test"


def cell(
    cell_id: str,
    *,
    capacity: int = 10,
    region: Region = DEFAULT_REGION,
    admission: Admission = "general",
    hard_cap: int | None = None,
    bound: int | None = None,
) -> CellRegistered:
    """A cell without a connection limit, unless one is given."""
    return CellRegistered(
        at=0,
        cell_id=cell_id,
        cell_url=url(cell_id),
        region=region,
        capacity_units=capacity,
        hard_cap_connections=hard_cap,
        unobserved_bound_connections=bound,
        admission=admission,
    )


def limited(
    cell_id: str, *, hard_cap: int = 600, bound: int = 50, capacity: int = 10_000
) -> CellRegistered:
    """A cell with a connection limit."""
    return cell(cell_id, capacity=capacity, hard_cap=hard_cap, bound=bound)


def admitted(cell_id: str, admission: Admission, before: Admission = "general") -> Event:
    return CellAdmissionChanged(
        at=0, cell_id=cell_id, before=before, admission=admission, reason="operator"
    )


def started(cell_id: str, incarnation: str = "one", at: int = 50) -> CellStarted:
    return CellStarted(
        at=at,
        cell_id=cell_id,
        cell_incarnation=incarnation,
        started_at=at,
        previous_incarnation=None,
    )


def report(
    cell_id: str,
    *,
    at: int,
    ready: bool = True,
    observed: int = 0,
    enforced: int | None = None,
    snapshot_at: int | None = None,
    snapshot_incarnation: str = "one",
    watermark: int = 0,
) -> TouchRuntime:
    """What a cell last said, with `enforced` connections if it is limited."""
    telemetry = None
    if enforced is not None:
        told_at = at if snapshot_at is None else snapshot_at
        parts = (watermark, enforced, 0, 0, enforced, told_at)
        telemetry = Telemetry(snapshot_incarnation, *parts)
    heartbeat = Heartbeat(url(cell_id), "one", 50, ready, observed, at)
    return TouchRuntime(cell_id, CellRuntime(observed, heartbeat, telemetry))


def connections(
    total: int,
    in_flight: int = 0,
    reserved: int = 0,
    *,
    enforced: int | None = None,
    watermark: int | None = None,
    hard_cap: int = 600,
    bound: int = 50,
) -> ConnectionReport:
    """The connection part of a limited cell's heartbeat."""
    added_up = total + in_flight + reserved
    units = added_up if enforced is None else enforced
    return ConnectionReport(total, in_flight, reserved, units, watermark, hard_cap, bound)


def beat(
    cell_id: str,
    *,
    incarnation: str = "one",
    started_at: int = 50,
    ready: bool = True,
    observed: int = 0,
    cell_url: str | None = None,
    region: Region = DEFAULT_REGION,
    told: ConnectionReport = NO_CONNECTIONS,
) -> RecordHeartbeat:
    return RecordHeartbeat(
        cell_id,
        cell_url or url(cell_id),
        incarnation,
        started_at,
        ready,
        observed,
        region,
        told,
    )


def active(host: HostId, *, since: int, until: int | None = None) -> TouchLiveness:
    """The host was last active at `since`; its own lease ends at `until`."""
    return TouchLiveness(*host, since + LEASE if until is None else until, since)


def lasting(host: HostId, activity_id: str, *, until: int, told: int = 0) -> TouchDeadline:
    """A lease ends at `until`, as was told at `told`."""
    return TouchDeadline(*host, activity_id, Deadline(until, told))


def ended(host: HostId, activity_id: str) -> TouchDeadline:
    return TouchDeadline(*host, activity_id, None)


def settled(
    host: HostId,
    on: str,
    *,
    epoch: int = 1,
    counts: Counts = NONE_COUNTED,
    leases: Mapping[str, Lease] | None = None,
    connection: Opened | None = None,
    loads: Mapping[str, Load] | None = None,
) -> Iterator[Event]:
    """A history after which the host is on a cell with exactly these counts and leases.

    `loads` is what the cells hold then; other hosts' part in it need not be told.
    """
    named: dict[str, Any] = {"user_id": host.user_id, "relay_host_id": host.relay_host_id, "at": 0}
    pending = (pending_control_id(epoch), Lease("control", on, 1))
    yield HostPlaced(
        **named,
        cell_id=on,
        epoch=epoch,
        counts=Counts(1),
        reason="new",
        previous_cell_id=None,
        region=DEFAULT_REGION,
        candidates=(),
        more_candidates=0,
        activity_id=pending[0],
        lease=pending[1],
        connection=connection,
    )
    for activity_id, lease in (leases or {}).items():
        yield ActivityAcquired(
            **named, cell_id=on, epoch=epoch, counts=counts, activity_id=activity_id, lease=lease
        )
    shifts = [Shift(key, 0, *load) for key, load in (loads or {}).items()]
    gone = pending if pending[0] not in (leases or {}) else ("none", pending[1])
    yield ActivityReleased(
        **named,
        shifts=tuple(shifts),
        cell_id=on,
        epoch=epoch,
        counts=counts,
        activity_id=gone[0],
        lease=gone[1],
    )
