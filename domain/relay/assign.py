"""Giving a host its place: sticky where the rules allow it, else the least loaded cell.

Rules: contract 1.2 (dormancy), 2.1 (admission), 4.7 (headroom), 7.1 (stranded hosts).
"""

from dataclasses import dataclass

from domain.ids import PENDING_CONTROL_PREFIX, HostId
from domain.limits import (
    ACTIVITY_LEASE_MS,
    DEFAULT_REGION,
    STRANDED_ACTIVITY_AGE_MAX_MS,
    STRANDED_GRANT_AGE_MIN_MS,
    Region,
)
from domain.refusals import (
    AssignmentActive,
    RelayCapacityExhausted,
    RelayConnectionHeadroomExhausted,
    TargetCellUnavailable,
    TargetMatchesSource,
)
from domain.relay.assignment import Assignment
from domain.relay.cell import Cell
from domain.relay.command import HostCommand
from domain.relay.headroom import has_headroom, live
from domain.relay.placement import Grant, PlacementReason, grant_of, move, regrant
from domain.relay.ranking import Choice, candidate, ranking_of
from domain.relay.standing import standing_of, standings
from domain.relay.turn import Turn

# commands


@dataclass(frozen=True, slots=True)
class Assign(HostCommand):
    """Give the host its place, the one it holds or a new one.

    `preferred_region` is remembered; `placement_region` (default: the preferred) steers placement.
    Refuses `relay_capacity_exhausted`, `relay_connection_headroom_exhausted`.
    """

    preferred_region: Region | None = None
    placement_region: Region | None = None


@dataclass(frozen=True, slots=True)
class RebalanceDormant(HostCommand):
    """Move a dormant host to another general cell.

    Refuses `assignment_not_found`, `assignment_active`, `target_matches_source`,
    `target_cell_unavailable`, `relay_connection_headroom_exhausted`, `relay_capacity_exhausted`.
    """

    target_cell_id: str


# decide


def assign(turn: Turn, command: Assign) -> Grant:
    """Sticky where the rules allow it, else the least loaded cell."""
    host = command.host
    wanted: Region = command.placement_region or command.preferred_region or DEFAULT_REGION
    held = turn.assignment(host)
    if held is None:
        _prefer(turn, command)
        return _place(turn, host, None, "new", wanted)
    cell = turn.require_cell(held.cell_id)
    _prefer(turn, command)
    if held.dormant(turn.liveness(host).last_activity_at, turn.now):
        reason: PlacementReason = "dormant"
    elif _stranded(turn, held, cell):
        reason = "stranded"
    elif not live(turn.runtime(cell.cell_id), turn.now, turn.policy):
        reason = "dead_cell"
    elif held.holds_control():
        lease_expires_at = turn.now + ACTIVITY_LEASE_MS
        turn.extend_liveness(host, lease_expires_at)
        return grant_of(held, cell, lease_expires_at)
    elif _headroom(turn, cell):
        return regrant(turn, held, cell)
    elif held.counts.units > 0:
        raise RelayConnectionHeadroomExhausted(**standing_of(turn, cell.cell_id))
    else:
        reason = "headroom"
    turn.settle()  # the original has committed the preference before it places
    if reason == "headroom" and cell.admission != "general":
        raise RelayConnectionHeadroomExhausted(**standing_of(turn, cell.cell_id))
    if reason == "dead_cell" and cell.limited:
        # Only a committed fence proves that a limited cell's sockets are gone.
        raise RelayCapacityExhausted(**standing_of(turn, cell.cell_id))
    return _place(turn, host, held, reason, wanted)


def rebalance_dormant(turn: Turn, command: RebalanceDormant) -> Grant:
    """Move a dormant host, without asking which cell is the least loaded."""
    host = command.host
    held = turn.require_assignment(host)
    if not held.dormant(turn.liveness(host).last_activity_at, turn.now):
        raise AssignmentActive(cell_id=held.cell_id, epoch=held.epoch)
    if held.cell_id == command.target_cell_id:
        raise TargetMatchesSource(cell_id=held.cell_id)
    target = turn.cell(command.target_cell_id)
    if (
        target is None
        or target.admission != "general"
        or not live(turn.runtime(target.cell_id), turn.now, turn.policy)
    ):
        raise TargetCellUnavailable(**standing_of(turn, command.target_cell_id))
    if not _headroom(turn, target):
        raise RelayConnectionHeadroomExhausted(**standing_of(turn, target.cell_id))
    load, runtime = turn.load(target.cell_id), turn.runtime(target.cell_id)
    seen = candidate(target, load, runtime, turn.policy)
    return move(turn, host, held, target, "rebalanced", target.region, Choice((seen,), 0))


def _prefer(turn: Turn, command: Assign) -> None:
    if command.preferred_region is not None:
        turn.touch_preference(command.host, command.preferred_region)


def _headroom(turn: Turn, cell: Cell) -> bool:
    load, runtime = turn.load(cell.cell_id), turn.runtime(cell.cell_id)
    return has_headroom(cell, load, runtime, turn.now, turn.policy)


def _stranded(turn: Turn, held: Assignment, cell: Cell) -> bool:
    """Whether an existing-only cell granted the host a place and then never served it."""
    if cell.admission != "existing-only":
        return False
    age_ms = turn.now - turn.liveness(held.host).last_activity_at
    if not STRANDED_GRANT_AGE_MIN_MS <= age_ms < STRANDED_ACTIVITY_AGE_MAX_MS:
        return False
    return not any(
        turn.deadline(held.host, activity_id).expires_at > turn.now
        for activity_id in held.leases
        if not activity_id.startswith(PENDING_CONTROL_PREFIX)
    )


def _place(
    turn: Turn, host: HostId, held: Assignment | None, reason: PlacementReason, wanted: Region
) -> Grant:
    choice = ranking_of(turn).choose(turn, wanted)
    if choice is None:
        home = standing_of(turn, held.cell_id) if held else {}
        raise RelayCapacityExhausted(region=wanted, **home, **standings(turn))
    target = turn.require_cell(choice.candidates[0].cell_id)
    return move(turn, host, held, target, reason, wanted, choice)
