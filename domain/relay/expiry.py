"""Taking back what nobody renewed: leases, counters, region preferences (contract 5.4).

Expiry is inclusive: what ends at `now` has ended. Each sweep settles the hosts its scan found; its
caller repeats it until it finds none.
"""

from dataclasses import dataclass

from domain.ids import HostId
from domain.limits import REGION_PREFERENCE_RETENTION_MS
from domain.relay.activity import ActivityExpired, CountsExpired
from domain.relay.assignment import Counts
from domain.relay.command import Command, ExpiredCounts, ExpiredLeases, OldPreferences, Scan
from domain.relay.ledger import Ledger
from domain.relay.turn import ReadSet, Turn

# commands


@dataclass(frozen=True, slots=True)
class ReleaseExpiredLeases(Command):
    """End the activity leases that are over; answers how many.

    Refuses `relay_capacity_exhausted` when a lowered capacity is still exceeded; what was ended
    before stays ended.
    """

    def scan(self, read_set: ReadSet, now: int) -> Scan:
        return ExpiredLeases(now)


@dataclass(frozen=True, slots=True)
class ReleaseExpiredCounts(Command):
    """Zero the counters of hosts whose own lease is over; answers how many hosts.

    Refuses `relay_capacity_exhausted` when a lowered capacity is still exceeded.
    """

    def scan(self, read_set: ReadSet, now: int) -> Scan:
        return ExpiredCounts(now)


@dataclass(frozen=True, slots=True)
class ForgetOldPreferences(Command):
    """Forget region preferences last observed over 30 days ago; answers how many."""

    def scan(self, read_set: ReadSet, now: int) -> Scan:
        return OldPreferences(now - REGION_PREFERENCE_RETENTION_MS)


# decide


def release_expired_leases(turn: Turn, command: ReleaseExpiredLeases) -> int:
    expired = sorted(
        (turn.deadline(host, activity_id).expires_at, host, activity_id)
        for host in turn.found
        for activity_id in turn.require_assignment(host).leases
        if turn.deadline(host, activity_id).expires_at <= turn.now
    )
    for deadline_at, host, activity_id in expired:
        _expire(turn, host, activity_id, deadline_at)
        turn.settle()
    return len(expired)


def _expire(turn: Turn, host: HostId, activity_id: str, deadline_at: int) -> None:
    held = turn.require_assignment(host)
    lease = held.leases[activity_id]
    ledger = Ledger(turn)
    ledger.release_within_capacity(lease.cell_id, lease.units)
    ledger.lease(lease.cell_id, -lease.units)
    turn.record(
        ActivityExpired(
            at=turn.now,
            user_id=host.user_id,
            relay_host_id=host.relay_host_id,
            shifts=ledger.shifts(),
            cell_id=held.cell_id,
            epoch=held.epoch,
            counts=held.counts.plus(lease.kind, -1),
            activity_id=activity_id,
            lease=lease,
            deadline_at=deadline_at,
        )
    )
    turn.extend_liveness(host, turn.now)
    turn.touch_deadline(host, activity_id, None)


def release_expired_counts(turn: Turn, command: ReleaseExpiredCounts) -> int:
    expired = [
        host
        for host in sorted(turn.found)
        if turn.liveness(host).lease_expires_at <= turn.now
        and any(turn.require_assignment(host).counts)
    ]
    for host in expired:
        held = turn.require_assignment(host)
        ledger = Ledger(turn)
        ledger.release_within_capacity(held.cell_id, held.counts.units)
        turn.record(
            CountsExpired(
                at=turn.now,
                user_id=host.user_id,
                relay_host_id=host.relay_host_id,
                shifts=ledger.shifts(),
                cell_id=held.cell_id,
                epoch=held.epoch,
                counts=Counts(),
                expired=held.counts,
                deadline_at=turn.liveness(host).lease_expires_at,
            )
        )
    return len(expired)


def forget_old_preferences(turn: Turn, command: ForgetOldPreferences) -> int:
    for host in turn.found:
        turn.touch_preference(host, None)
    return len(turn.found)
