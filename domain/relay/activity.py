"""What a host does on a cell: activity leases and raw counters (contract 1.2, 3).

A lease is renewed by a touch; only its beginning, change and end are events.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from domain.ids import require_activity_id
from domain.limits import (
    ACTIVITY_LEASE_MS,
    CONTROL_RENEWAL_HORIZON_MS,
    LEASES_PER_HOST_MAX,
    SAFE_INTEGER_MAX,
)
from domain.refusals import (
    ActivityCellNotAuthoritative,
    AssignmentNotFound,
    ControlActivityMoved,
    ControlActivityNotFound,
    HostActivitiesExhausted,
    InvalidActivityExpiry,
    Refusal,
)
from domain.relay.assignment import (
    REQUEST_UNITS,
    Assignment,
    Counts,
    HeldEvent,
    Kind,
    Lease,
)
from domain.relay.command import HostCommand
from domain.relay.ledger import Ledger
from domain.relay.runtime import Deadline
from domain.relay.turn import Turn

# events


class ActivityAcquired(HeldEvent):
    """A host began an activity, or turned one of the same id into another kind or cell."""

    topic: ClassVar[str] = "activity.acquired"

    activity_id: str
    lease: Lease
    converted_from: Lease | None = None


class ActivityReleased(HeldEvent):
    """A host ended an activity."""

    topic: ClassVar[str] = "activity.released"

    activity_id: str
    lease: Lease


class ActivityExpired(HeldEvent):
    """An activity outlived its lease and was taken back."""

    topic: ClassVar[str] = "activity.expired"

    activity_id: str
    lease: Lease
    deadline_at: int
    """The expiry that was observed, epoch ms."""


class ActivityCounted(HeldEvent):
    """A raw counter was raised or lowered, without a lease."""

    topic: ClassVar[str] = "activity.counted"

    kind: Kind
    delta: Literal[1, -1]


class CountsExpired(HeldEvent):
    """Counters outlived the assignment's own lease and were zeroed."""

    topic: ClassVar[str] = "activity.counts_expired"

    expired: Counts
    deadline_at: int


# evolve


def evolve_acquired(before: Assignment, event: ActivityAcquired) -> Assignment:
    return before.active(event.counts, before.leases | {event.activity_id: event.lease})


def evolve_ended(before: Assignment, event: ActivityReleased | ActivityExpired) -> Assignment:
    leases = before.leases.copy()
    leases.pop(event.activity_id, None)
    return before.active(event.counts, leases)


def evolve_counted(before: Assignment, event: ActivityCounted | CountsExpired) -> Assignment:
    return before.active(event.counts, before.leases)


# commands


@dataclass(frozen=True, slots=True)
class ChangeActivity(HostCommand):
    """Raise or lower one raw counter. Unknown hosts are ignored.

    Refuses `relay_capacity_exhausted`.
    """

    kind: Kind
    delta: Literal[1, -1]


@dataclass(frozen=True, slots=True)
class AcquireActivity(HostCommand):
    """Begin an activity, renew it, or turn it into another kind or cell.

    `expires_at` is epoch ms, by default a full lease from now. Refuses `invalid_activity_id`,
    `assignment_not_found`, `activity_cell_not_authoritative`, `invalid_activity_expiry`,
    `relay_capacity_exhausted`, `host_activities_exhausted`.
    """

    activity_id: str
    kind: Kind
    cell_id: str
    expires_at: int | float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseActivity(HostCommand):
    """End an activity; answers whether there was one. Refuses `invalid_activity_id`."""

    activity_id: str


@dataclass(frozen=True, slots=True)
class RenewControl(HostCommand):
    """Extend a control's lease to `expires_at` (epoch ms), never shorten it.

    Refuses `invalid_activity_id`, `invalid_activity_expiry` (past, or over 120 s ahead),
    `assignment_not_found`, `activity_cell_not_authoritative`, `control_activity_not_found`,
    `control_activity_moved`.
    """

    activity_id: str
    cell_id: str
    expires_at: int | float


# decide


def change_activity(turn: Turn, command: ChangeActivity) -> None:
    held = turn.assignment(command.host)
    if held is None:
        return
    counts = held.counts.plus(command.kind, command.delta)
    if counts != held.counts:
        ledger = Ledger(turn)
        units = REQUEST_UNITS[command.kind]
        if command.delta > 0:
            ledger.reserve(held.cell_id, units)
        else:
            ledger.release(held.cell_id, units)
        turn.record(
            ActivityCounted(
                at=turn.now,
                user_id=held.user_id,
                relay_host_id=held.relay_host_id,
                shifts=ledger.shifts(),
                cell_id=held.cell_id,
                epoch=held.epoch,
                counts=counts,
                kind=command.kind,
                delta=command.delta,
            )
        )
    turn.touch_liveness(command.host, turn.now + ACTIVITY_LEASE_MS, turn.now)


def acquire_activity(turn: Turn, command: AcquireActivity) -> None:
    require_activity_id(command.activity_id)
    held = turn.require_assignment(command.host)
    _require_authority(held, command.cell_id)
    expires_at = command.expires_at
    if expires_at is None:
        expires_at = turn.now + ACTIVITY_LEASE_MS
    expires_at = _require_expiry(expires_at, turn.now, SAFE_INTEGER_MAX)
    known = held.leases.get(command.activity_id)
    if known is None or (known.kind, known.cell_id) != (command.kind, command.cell_id):
        _begin(turn, held, command, known)
    turn.extend_liveness(command.host, expires_at)
    turn.touch_deadline(command.host, command.activity_id, Deadline(expires_at, turn.now))


def _begin(turn: Turn, held: Assignment, command: AcquireActivity, known: Lease | None) -> None:
    if known is None and len(held.leases) >= LEASES_PER_HOST_MAX:
        raise HostActivitiesExhausted(leases_max=LEASES_PER_HOST_MAX)
    ledger, counts = Ledger(turn), held.counts
    lease = Lease(command.kind, command.cell_id, REQUEST_UNITS[command.kind])
    if known is not None:
        ledger.release_within_capacity(known.cell_id, known.units)
        ledger.lease(known.cell_id, -known.units)
        counts = counts.plus(known.kind, -1)
    ledger.reserve(lease.cell_id, lease.units)
    ledger.lease(lease.cell_id, lease.units)
    turn.record(
        ActivityAcquired(
            at=turn.now,
            user_id=held.user_id,
            relay_host_id=held.relay_host_id,
            shifts=ledger.shifts(),
            cell_id=held.cell_id,
            epoch=held.epoch,
            counts=counts.plus(lease.kind, 1),
            activity_id=command.activity_id,
            lease=lease,
            converted_from=known,
        )
    )


def release_activity(turn: Turn, command: ReleaseActivity) -> bool:
    require_activity_id(command.activity_id)
    held = turn.assignment(command.host)
    lease = held.leases.get(command.activity_id) if held else None
    if held is None or lease is None:
        return False
    ledger = Ledger(turn)
    ledger.release(lease.cell_id, lease.units)
    ledger.lease(lease.cell_id, -lease.units)
    turn.record(
        ActivityReleased(
            at=turn.now,
            user_id=held.user_id,
            relay_host_id=held.relay_host_id,
            shifts=ledger.shifts(),
            cell_id=held.cell_id,
            epoch=held.epoch,
            counts=held.counts.plus(lease.kind, -1),
            activity_id=command.activity_id,
            lease=lease,
        )
    )
    turn.extend_liveness(command.host, turn.now)
    turn.touch_deadline(command.host, command.activity_id, None)
    return True


def renew_control(turn: Turn, command: RenewControl) -> None:
    require_activity_id(command.activity_id)
    horizon = turn.now + CONTROL_RENEWAL_HORIZON_MS
    expires_at = _require_expiry(command.expires_at, turn.now, horizon)
    refusal = renewal_refused(turn.assignment(command.host), command.activity_id, command.cell_id)
    if refusal is not None:
        raise refusal
    known = turn.deadline(command.host, command.activity_id)
    after = Deadline(max(known.expires_at, expires_at), max(known.updated_at, turn.now))
    turn.extend_liveness(command.host, expires_at)
    turn.touch_deadline(command.host, command.activity_id, after)


def renewal_refused(held: Assignment | None, activity_id: str, cell_id: str) -> Refusal | None:
    """Why this cell may not renew this control of the host, if it may not."""
    if held is None:
        return AssignmentNotFound()
    if held.cell_id != cell_id:
        return ActivityCellNotAuthoritative(cell_id=cell_id, assigned_cell_id=held.cell_id)
    lease = held.leases.get(activity_id)
    if lease is None:
        return ControlActivityNotFound()
    if lease.kind != "control" or lease.cell_id != cell_id:
        return ControlActivityMoved(kind=lease.kind, cell_id=lease.cell_id)
    return None


def _require_authority(held: Assignment, cell_id: str) -> None:
    if held.cell_id != cell_id:
        raise ActivityCellNotAuthoritative(cell_id=cell_id, assigned_cell_id=held.cell_id)


def _require_expiry(expires_at: int | float, now: int, latest: int) -> int:
    whole = isinstance(expires_at, int) or (
        isinstance(expires_at, float) and expires_at.is_integer()
    )
    if not whole or not now < expires_at <= latest:
        raise InvalidActivityExpiry(now=now, latest=latest)
    return int(expires_at)
