"""Which cells could take a host, and which of them is the least loaded (contract 2.1, 4.7)."""

from typing import NamedTuple

from domain.limits import Region
from domain.relay.cell import Cell
from domain.relay.headroom import has_headroom, live
from domain.relay.turn import Turn


class Candidate(NamedTuple):
    """A cell that could have taken the host, and its load as the placement saw it."""

    cell_id: str
    reserved_units: int
    observed_requests: int
    capacity_units: int


def candidates(turn: Turn) -> tuple[Candidate, ...]:
    """The general cells with room, life and headroom."""
    now, policy = turn.now, turn.policy
    found = []
    for cell in turn.cells().values():
        if cell.admission != "general":
            continue
        load, runtime = turn.load(cell.cell_id), turn.runtime(cell.cell_id)
        if (
            load.reserved_units < cell.capacity_units
            and live(runtime, now, policy)
            and has_headroom(cell, load, runtime, now, policy)
        ):
            found.append(candidate(turn, cell))
    return tuple(found)


def candidate(turn: Turn, cell: Cell) -> Candidate:
    runtime = turn.runtime(cell.cell_id)
    observed = runtime.observed_requests
    if turn.policy.require_live_cells and runtime.heartbeat:
        observed = runtime.heartbeat.observed_requests
    reserved = turn.load(cell.cell_id).reserved_units
    return Candidate(cell.cell_id, reserved, observed, cell.capacity_units)


def least_loaded(turn: Turn, found: tuple[Candidate, ...], wanted: Region) -> Candidate | None:
    """The candidate with the lowest load; one of the wanted region if there is any."""
    in_region = [it for it in found if turn.require_cell(it.cell_id).region == wanted]
    return min(in_region or found, key=_share, default=None)


def _share(candidate: Candidate) -> tuple[float, str]:
    """How full a candidate is; ties go to the lower id."""
    cell_id, reserved, observed, capacity = candidate
    return ((reserved + observed) / capacity, cell_id)
