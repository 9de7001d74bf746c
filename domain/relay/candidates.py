"""Which cells could take a host, and which of them is the least loaded (contract 2.1, 4.7)."""

from operator import itemgetter
from typing import NamedTuple

from domain.limits import SAFE_INTEGER_MAX, Region
from domain.relay.cell import Cell
from domain.relay.headroom import has_headroom, live
from domain.relay.policy import Policy
from domain.relay.runtime import SILENT, CellRuntime
from domain.relay.turn import NO_LOAD, Load, Turn


class Candidate(NamedTuple):
    """A cell that could have taken the host, and its load as the placement saw it."""

    cell_id: str
    reserved_units: int
    observed_requests: int
    capacity_units: int


class Eligible(NamedTuple):
    """A cell as last judged. It can take a host until `until` (epoch ms), and no other way."""

    candidate: Candidate
    rank: tuple[float, str]
    """How full it is; ties go to the lower id."""
    region: Region
    until: int


class Judged(NamedTuple):
    """A judgement, and the facts it was made of: it stands as long as they are the same."""

    cell: Cell
    load: Load
    runtime: CellRuntime
    eligible: Eligible | None


def candidates(turn: Turn) -> list[Eligible]:
    """The general cells with room, life and headroom."""
    now, judgements = turn.now, turn.judgements
    loads, runtimes = turn.loads(), turn.runtimes()
    found = []
    for cell_id, cell in turn.cells().items():
        load, runtime = loads.get(cell_id, NO_LOAD), runtimes.get(cell_id, SILENT)
        known = judgements.get(cell_id)
        if known is None or known[1] is not load or known[2] is not runtime or known[0] is not cell:
            eligible = _judge(cell, load, runtime, turn)
            judgements[cell_id] = Judged(cell, load, runtime, eligible)
        else:
            eligible = known[3]
        if eligible is not None and now < eligible[3]:
            found.append(eligible)
    return found


def _judge(cell: Cell, load: Load, runtime: CellRuntime, turn: Turn) -> Eligible | None:
    """Time can only end eligibility, so what is not eligible now is not until facts change."""
    now, policy = turn.now, turn.policy
    if (
        cell.admission != "general"
        or load.reserved_units >= cell.capacity_units
        or not live(runtime, now, policy)
        or not has_headroom(cell, load, runtime, now, policy)
    ):
        return None
    reports = []
    if policy.require_live_cells and runtime.heartbeat is not None:
        reports.append(runtime.heartbeat.last_heartbeat_at)
    if cell.limited and runtime.telemetry is not None:
        reports.append(runtime.telemetry.snapshot_at)
    until = min(reports) + policy.heartbeat_ttl_ms if reports else SAFE_INTEGER_MAX
    seen = candidate(cell, load, runtime, policy)
    share = (seen.reserved_units + seen.observed_requests) / seen.capacity_units
    return Eligible(seen, (share, cell.cell_id), cell.region, until)


def candidate(cell: Cell, load: Load, runtime: CellRuntime, policy: Policy) -> Candidate:
    """A cell with its load. With live cells, only what its last heartbeat observed counts."""
    observed = runtime.observed_requests
    if policy.require_live_cells and runtime.heartbeat is not None:
        observed = runtime.heartbeat.observed_requests
    return Candidate(cell.cell_id, load.reserved_units, observed, cell.capacity_units)


def least_loaded(found: list[Eligible], wanted: Region) -> Eligible | None:
    """The candidate with the lowest load; one of the wanted region if there is any."""
    in_region = [it for it in found if it[2] == wanted]
    return min(in_region or found, key=itemgetter(1), default=None)
