"""Which cells could take a host, the least loaded first (contract 2.1, 4.7).

The order is remembered from one placement to the next and corrected only for the cells that
changed since, and for those whose reports grew too old: a placement's cost does not grow with the
fleet.
"""

from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from domain.limits import CANDIDATES_TOLD_MAX, SAFE_INTEGER_MAX, Region
from domain.relay.cell import Cell
from domain.relay.headroom import has_headroom, live
from domain.relay.policy import Policy
from domain.relay.runtime import CellRuntime
from domain.relay.turn import Load, Turn

Rank: TypeAlias = tuple[float, str]
"""How full a cell is; ties go to the lower id."""


class Candidate(NamedTuple):
    """A cell that could have taken the host, and its load as the placement saw it."""

    cell_id: str
    reserved_units: int
    observed_requests: int
    capacity_units: int


class Choice(NamedTuple):
    """The cell to take, the next best ones, and how many more there were."""

    candidates: tuple[Candidate, ...]
    """The chosen one first."""
    more: int


class _Eligible(NamedTuple):
    """A cell as last judged. It can take a host until `until` (epoch ms), and no other way."""

    candidate: Candidate
    rank: Rank
    region: Region
    until: int


def ranking_of(turn: Turn) -> "Ranking":
    """What is remembered of the order; a turn that changed cells itself judges all anew."""
    if turn.after.cells or turn.after.loads or turn.after.runtimes:
        return Ranking()
    if "ranking" not in turn.remembered:
        turn.remembered["ranking"] = Ranking()
    ranking: Ranking = turn.remembered["ranking"]
    return ranking


class Ranking:
    """The cells that can take a host now, by region and load."""

    __slots__ = ("_eligible", "_ends", "_now", "_order")

    def __init__(self) -> None:
        self._now: int | None = None
        self._forget()

    def choose(self, turn: Turn, wanted: Region) -> Choice | None:
        """The least loaded cell; one of the wanted region if there is any."""
        self._correct(turn)
        fronts = [it for ranks in self._order.values() for it in ranks[:CANDIDATES_TOLD_MAX]]
        if not fronts:
            return None
        chosen = self._order[wanted][0] if wanted in self._order else min(fronts)
        fronts.remove(chosen)
        told = [chosen, *sorted(fronts)[: CANDIDATES_TOLD_MAX - 1]]
        seen = tuple([self._eligible[cell_id].candidate for _, cell_id in told])
        return Choice(seen, len(self._eligible) - len(seen))

    def _forget(self) -> None:
        self._eligible: dict[str, _Eligible] = {}
        self._order: dict[Region, list[Rank]] = {}
        self._ends: list[tuple[int, str]] = []
        """When cells stop being eligible; of those judged anew since, too."""

    def _correct(self, turn: Turn) -> None:
        if self._now is None or turn.now < self._now:
            self._forget()
            changed = set(turn.cells())
        else:
            changed = turn.changed_cells
        self._now = turn.now
        for cell_id in changed:
            self._drop(cell_id)
            cell = turn.cell(cell_id)
            if cell is not None:
                self._judge(cell, turn.load(cell_id), turn.runtime(cell_id), turn)
        changed.clear()
        while self._ends and self._ends[0][0] <= turn.now:
            until, cell_id = heappop(self._ends)
            known = self._eligible.get(cell_id)
            if known is not None and known.until == until:
                self._drop(cell_id)

    def _drop(self, cell_id: str) -> None:
        known = self._eligible.pop(cell_id, None)
        if known is not None:
            ranks = self._order[known.region]
            del ranks[bisect_left(ranks, known.rank)]
            if not ranks:
                del self._order[known.region]

    def _judge(self, cell: Cell, load: Load, runtime: CellRuntime, turn: Turn) -> None:
        """Time can only end eligibility, so what is not eligible now is not until facts change."""
        now, policy = turn.now, turn.policy
        if (
            cell.admission != "general"
            or load.reserved_units >= cell.capacity_units
            or not live(runtime, now, policy)
            or not has_headroom(cell, load, runtime, now, policy)
        ):
            return
        seen = candidate(cell, load, runtime, policy)
        share = (seen.reserved_units + seen.observed_requests) / seen.capacity_units
        until = _until(cell, runtime, policy)
        self._eligible[cell.cell_id] = _Eligible(seen, (share, cell.cell_id), cell.region, until)
        insort(self._order.setdefault(cell.region, []), (share, cell.cell_id))
        if until < SAFE_INTEGER_MAX:
            heappush(self._ends, (until, cell.cell_id))


def candidate(cell: Cell, load: Load, runtime: CellRuntime, policy: Policy) -> Candidate:
    """A cell with its load. With live cells, only what its last heartbeat observed counts."""
    observed = runtime.observed_requests
    if policy.require_live_cells and runtime.heartbeat is not None:
        observed = runtime.heartbeat.observed_requests
    return Candidate(cell.cell_id, load.reserved_units, observed, cell.capacity_units)


def _until(cell: Cell, runtime: CellRuntime, policy: Policy) -> int:
    """When the oldest report that counts stops counting."""
    reports = []
    if policy.require_live_cells and runtime.heartbeat is not None:
        reports.append(runtime.heartbeat.last_heartbeat_at)
    if cell.limited and runtime.telemetry is not None:
        reports.append(runtime.telemetry.snapshot_at)
    return min(reports) + policy.heartbeat_ttl_ms if reports else SAFE_INTEGER_MAX
