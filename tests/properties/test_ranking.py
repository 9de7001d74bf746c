"""The order of cells, remembered and corrected, is the one that judging all of them anew gives."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.limits import CANDIDATES_TOLD_MAX, HEARTBEAT_TTL_MS, REGIONS, Region
from domain.relay.cell import Cell
from domain.relay.decide import evolve_assignment
from domain.relay.policy import Policy
from domain.relay.ranking import Choice, Ranking, candidate
from domain.relay.runtime import SILENT, CellRuntime, Heartbeat
from domain.relay.standing import standing
from domain.relay.turn import Facts, Load, ReadSet, Turn

IDS = [f"c-{number}" for number in range(7)]
POLICY = Policy()


def a_cell(cell_id: str, region: Region, admission: str, capacity_units: int) -> Cell:
    return Cell(
        cell_id=cell_id,
        cell_url=f"https://{cell_id}.example",
        region=region,
        capacity_units=capacity_units,
        hard_cap_connections=None,
        unobserved_bound_connections=None,
        admission="general" if admission == "general" else "existing-only",
        admission_changed_at=0,
    )


def heard(cell_id: str, at: int, ready: bool, observed: int) -> CellRuntime:
    return CellRuntime(
        heartbeat=Heartbeat(f"https://{cell_id}.example", "one", 1, ready, observed, at)
    )


CHANGES = st.one_of(
    st.builds(
        a_cell,
        st.sampled_from(IDS),
        st.sampled_from(REGIONS),
        st.sampled_from(["general", "closed"]),
        st.integers(1, 4),
    ),
    st.tuples(st.sampled_from(IDS), st.builds(Load, st.integers(0, 4))),
    st.tuples(st.sampled_from(IDS), st.booleans(), st.integers(0, 3)),
    st.sampled_from([1, HEARTBEAT_TTL_MS - 1, HEARTBEAT_TTL_MS, -1]),
    st.just("look"),
)


def plain(turn: Turn, wanted: Region) -> Choice | None:
    """The rule as one would say it."""
    open_cells = [
        cell
        for cell in turn.cells().values()
        if standing(
            cell, turn.load(cell.cell_id), turn.runtime(cell.cell_id), turn.now, POLICY
        ).word
        == "open"
    ]
    seen = {
        it.cell_id: candidate(it, turn.load(it.cell_id), turn.runtime(it.cell_id), POLICY)
        for it in open_cells
    }

    def rank(cell: Cell) -> tuple[float, str]:
        it = seen[cell.cell_id]
        return (it.reserved_units + it.observed_requests) / it.capacity_units, cell.cell_id

    near = [cell for cell in open_cells if cell.region == wanted]
    if not open_cells:
        return None
    chosen = min(near or open_cells, key=rank)
    others = sorted((it for it in open_cells if it is not chosen), key=rank)
    told = [chosen, *others[: CANDIDATES_TOLD_MAX - 1]]
    return Choice(tuple(seen[it.cell_id] for it in told), len(open_cells) - len(told))


@given(st.lists(CHANGES, max_size=60))
def test_what_is_remembered_is_what_judging_anew_gives(changes: list[object]) -> None:
    facts, remembered, now = Facts(), Ranking(), 1_000_000
    for change in changes:
        after = Facts()
        if isinstance(change, Cell):
            after.cells[change.cell_id] = change
        elif isinstance(change, int):
            now += change
        elif isinstance(change, tuple) and isinstance(change[1], Load):
            after.loads[change[0]] = change[1]
        elif isinstance(change, tuple):
            before = facts.runtimes.get(change[0], SILENT)
            told = heard(change[0], now, change[1], change[2])
            after.runtimes[change[0]] = replace(before, heartbeat=told.heartbeat)
        facts.adopt(after)
        turn = Turn(ReadSet(POLICY, facts), now, evolve_assignment)
        for wanted in REGIONS if change == "look" else ():
            told_anew = plain(turn, wanted)
            assert Ranking().choose(turn, wanted) == told_anew
            assert remembered.choose(turn, wanted) == told_anew
