"""Putting a host on a cell: the events of placement and sticky grants (contract 1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from domain.events import Upcaster
from domain.ids import HostId, pending_control_id
from domain.limits import ACTIVITY_LEASE_MS, CANDIDATES_TOLD_MAX, Region
from domain.relay.assignment import Assignment, Connection, Counts, HeldEvent, Lease, Opened
from domain.relay.cell import Cell
from domain.relay.ledger import Ledger
from domain.relay.ranking import Choice
from domain.relay.runtime import Deadline
from domain.relay.turn import Turn

PlacementReason: TypeAlias = Literal[
    "new", "dormant", "stranded", "headroom", "dead_cell", "rebalanced"
]


# events


def _tell_few_candidates(fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 listed every cell that could have taken the host, in no order."""

    def rank(it: list[Any]) -> tuple[bool, float, str]:
        cell_id, reserved_units, observed_requests, capacity_units = it
        share = (reserved_units + observed_requests) / capacity_units
        return cell_id != fields["cell_id"], share, cell_id

    told = sorted(fields["candidates"], key=rank)
    few = told[:CANDIDATES_TOLD_MAX]
    return {**fields, "candidates": few, "more_candidates": len(told) - len(few)}


class HostPlaced(HeldEvent):
    """A host got a place on a cell, at a new epoch."""

    topic: ClassVar[str] = "host.placed"
    version: ClassVar[int] = 2
    upcasters: ClassVar[Mapping[int, Upcaster]] = {1: _tell_few_candidates}

    reason: PlacementReason
    previous_cell_id: str | None
    region: Region
    candidates: tuple[tuple[str, int, int, int], ...]
    """Each a `Candidate`: cell, reserved units, observed requests, capacity units.

    The chosen cell and the least loaded of the others, at most `CANDIDATES_TOLD_MAX`.
    """
    more_candidates: int
    """How many more cells could have taken the host."""
    activity_id: str
    lease: Lease
    dropped_activity_ids: tuple[str, ...] = ()
    connection: Opened | None = None
    released_connections: tuple[int, ...] = ()
    last_activity_seen_at: int | None = None
    last_heartbeat_seen_at: int | None = None


class ControlRegranted(HeldEvent):
    """A host kept its cell and got a new pending control on it."""

    topic: ClassVar[str] = "control.regranted"

    activity_id: str
    lease: Lease
    connection: Opened | None = None


# evolve


def evolve_placed(before: Assignment | None, event: HostPlaced) -> Assignment:
    leases = dict(before.leases) if before else {}
    connections = dict(before.connections) if before else {}
    opened = before.connections_opened if before else 0
    for activity_id in event.dropped_activity_ids:
        leases.pop(activity_id, None)
    for number in event.released_connections:
        connections.pop(number, None)
    leases.setdefault(event.activity_id, event.lease)
    if event.connection:
        opened = event.connection.number
        connections[opened] = _open(event, event.connection)
    return Assignment(
        event.user_id,
        event.relay_host_id,
        event.cell_id,
        event.epoch,
        event.counts,
        leases,
        connections,
        opened,
        before.controls if before else {},
    )


def _open(event: HeldEvent, opened: Opened) -> Connection:
    return Connection(event.cell_id, event.epoch, "reserved", event.at, opened.timeout_at)


def evolve_regranted(before: Assignment, event: ControlRegranted) -> Assignment:
    connections, opened = before.connections, before.connections_opened
    if event.connection:
        opened = event.connection.number
        connections = {**connections, opened: _open(event, event.connection)}
    return replace(
        before,
        counts=event.counts,
        leases={event.activity_id: event.lease, **before.leases},
        connections=connections,
        connections_opened=opened,
    )


# decide


@dataclass(frozen=True, slots=True)
class Grant:
    """Where a host is to attach, until when (epoch ms)."""

    user_id: str
    relay_host_id: str
    cell_id: str
    cell_url: str
    region: Region
    epoch: int
    lease_expires_at: int


def move(
    turn: Turn,
    host: HostId,
    held: Assignment | None,
    target: Cell,
    reason: PlacementReason,
    wanted: Region,
    choice: Choice,
) -> Grant:
    """Record the placement: units, epoch, pending control, connections."""
    epoch, lease_expires_at = 1, turn.now + ACTIVITY_LEASE_MS
    ledger = Ledger(turn)
    dropped: tuple[str, ...] = ()
    released: tuple[int, ...] = ()
    last_activity_seen_at = None
    if held is not None:
        epoch = held.epoch + 1
        last_activity_seen_at = turn.liveness(host).last_activity_at
        if reason != "rebalanced":
            ledger.release_within_capacity(held.cell_id, held.counts.units)
        if reason in ("dead_cell", "stranded"):
            # A dead or unwilling cell owns no work; late expiry must not shrink the new place.
            dropped = tuple(held.leases)
            for lease in held.leases.values():
                ledger.lease(lease.cell_id, -lease.units)
        released = tuple(
            number
            for number, it in held.connections.items()
            if it.cell_id == held.cell_id and it.epoch == held.epoch
        )
        ledger.connect(held.cell_id, -len(released))
    ledger.reserve(target.cell_id, 1)
    remaining = replace(held, leases={}) if held and dropped else held
    activity_id, lease, connection = _expect_control(turn, ledger, remaining, target, epoch)
    turn.record(
        HostPlaced(
            at=turn.now,
            user_id=host.user_id,
            relay_host_id=host.relay_host_id,
            shifts=ledger.shifts(),
            cell_id=target.cell_id,
            epoch=epoch,
            counts=Counts(controls=1),
            reason=reason,
            previous_cell_id=held.cell_id if held else None,
            region=wanted,
            candidates=choice.candidates,
            more_candidates=choice.more,
            activity_id=activity_id,
            lease=lease,
            dropped_activity_ids=dropped,
            connection=connection,
            released_connections=released,
            last_activity_seen_at=last_activity_seen_at,
            last_heartbeat_seen_at=_last_heartbeat(turn, held),
        )
    )
    turn.touch_liveness(host, lease_expires_at, turn.now)
    for gone in dropped:
        turn.touch_deadline(host, gone, None)
    turn.touch_deadline(host, activity_id, Deadline(lease_expires_at, turn.now))
    return Grant(*host, target.cell_id, target.cell_url, target.region, epoch, lease_expires_at)


def _last_heartbeat(turn: Turn, held: Assignment | None) -> int | None:
    heartbeat = turn.runtime(held.cell_id).heartbeat if held else None
    return heartbeat.last_heartbeat_at if heartbeat else None


def _expect_control(
    turn: Turn, ledger: Ledger, held: Assignment | None, cell: Cell, epoch: int
) -> tuple[str, Lease, Opened | None]:
    """A pending control lease, and a connection reservation if the cell is limited.

    A lease that already has the pending id keeps its kind and cell; only its deadline moves.
    """
    activity_id = pending_control_id(epoch)
    lease = held.leases.get(activity_id) if held else None
    if lease is None:
        lease = Lease("control", cell.cell_id, 1)
        ledger.lease(cell.cell_id, 1)
    if not cell.limited or (held and held.unclaimed_connection(cell.cell_id, epoch) is not None):
        return activity_id, lease, None
    ledger.connect(cell.cell_id, 1)
    number = held.connections_opened + 1 if held else 1
    return activity_id, lease, Opened(number, turn.now + ACTIVITY_LEASE_MS)


def regrant(turn: Turn, held: Assignment, cell: Cell) -> Grant:
    """Reserve a pending control again on the cell the host holds."""
    host, lease_expires_at = held.host, turn.now + ACTIVITY_LEASE_MS
    ledger = Ledger(turn)
    ledger.reserve(cell.cell_id, 1)
    activity_id, lease, connection = _expect_control(turn, ledger, held, cell, held.epoch)
    turn.record(
        ControlRegranted(
            at=turn.now,
            user_id=host.user_id,
            relay_host_id=host.relay_host_id,
            shifts=ledger.shifts(),
            cell_id=cell.cell_id,
            epoch=held.epoch,
            counts=held.counts.plus("control", 1),
            activity_id=activity_id,
            lease=lease,
            connection=connection,
        )
    )
    turn.extend_liveness(host, lease_expires_at)
    turn.touch_deadline(host, activity_id, Deadline(lease_expires_at, turn.now))
    return grant_of(held, cell, lease_expires_at)


def grant_of(held: Assignment, cell: Cell, lease_expires_at: int) -> Grant:
    return Grant(*held.host, cell.cell_id, cell.cell_url, cell.region, held.epoch, lease_expires_at)
