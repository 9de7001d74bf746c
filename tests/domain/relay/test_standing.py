"""A cell's standing says exactly what a placement asks, in a word."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from domain.relay.cell import Admission, Cell
from domain.relay.decide import evolve_assignment
from domain.relay.policy import Policy
from domain.relay.ranking import Ranking
from domain.relay.runtime import SILENT, CellRuntime, Heartbeat, Telemetry
from domain.relay.standing import Standing, Word, standing
from domain.relay.turn import NO_LOAD, Facts, Load, ReadSet, Turn
from tests.domain.relay.fleet import TTL

NOW = 1_000_000
LIVE, ANY = Policy(), Policy(require_live_cells=False)


def a_cell(admission: Admission = "general", hard_cap: int | None = None) -> Cell:
    bound = None if hard_cap is None else 0
    return Cell("a", "https://a", "us-central1", 10, hard_cap, bound, admission, 7)


def told(at: int = NOW, *, ready: bool = True, telemetry: Telemetry | None = None) -> CellRuntime:
    heartbeat = Heartbeat("https://a", "one", 50, ready, 0, at)
    return CellRuntime(heartbeat=heartbeat, telemetry=telemetry)


def counted(enforced: int, at: int = NOW, incarnation: str = "one") -> Telemetry:
    return Telemetry(incarnation, 0, enforced, 0, 0, enforced, at)


@pytest.mark.parametrize(
    ("cell", "load", "runtime", "policy", "stands"),
    [
        (a_cell(), NO_LOAD, told(), LIVE, Standing("open")),
        (a_cell(), NO_LOAD, SILENT, ANY, Standing("open")),
        (a_cell(), NO_LOAD, SILENT, LIVE, Standing("silent")),
        (a_cell(), NO_LOAD, told(NOW - TTL), LIVE, Standing("silent", NOW - TTL)),
        (a_cell("existing-only"), NO_LOAD, told(0), LIVE, Standing("silent", 0)),
        (a_cell(hard_cap=600), NO_LOAD, told(0), ANY, Standing("silent", 0)),
        (a_cell(), NO_LOAD, told(ready=False), LIVE, Standing("not_ready")),
        (a_cell("existing-only"), NO_LOAD, told(), LIVE, Standing("closed", 7)),
        (a_cell("migration-only"), NO_LOAD, told(), LIVE, Standing("closed", 7)),
        (a_cell(), Load(10), told(), LIVE, Standing("full")),
        (a_cell(hard_cap=600), NO_LOAD, told(), LIVE, Standing("without_headroom")),
        (
            a_cell(hard_cap=600),
            NO_LOAD,
            told(telemetry=counted(500)),
            LIVE,
            Standing("without_headroom"),
        ),
        (
            a_cell(hard_cap=600),
            NO_LOAD,
            told(telemetry=counted(1, NOW - 5, "before")),
            LIVE,
            Standing("wrong_incarnation", NOW - 5),
        ),
    ],
)
def test_a_standing_is_the_cause(
    cell: Cell, load: Load, runtime: CellRuntime, policy: Policy, stands: Standing
) -> None:
    assert standing(cell, load, runtime, NOW, policy) == stands


TIMES = st.sampled_from([0, NOW - TTL, NOW - TTL + 1, NOW])
TELEMETRY = st.none() | st.builds(
    counted, st.sampled_from([0, 499, 500]), TIMES, st.sampled_from(["one", "before"])
)
RUNTIMES = st.just(SILENT) | st.builds(told, TIMES, ready=st.booleans(), telemetry=TELEMETRY)
ADMISSIONS: st.SearchStrategy[Admission] = st.sampled_from(
    ["general", "existing-only", "migration-only"]
)
CELLS = st.builds(a_cell, ADMISSIONS, st.sampled_from([None, 600]))


@for_all(CELLS, st.sampled_from([NO_LOAD, Load(10)]), RUNTIMES, st.sampled_from([LIVE, ANY]))
def test_exactly_the_open_cells_are_candidates(
    cell: Cell, load: Load, runtime: CellRuntime, policy: Policy
) -> None:
    facts = Facts({"a": cell}, {"a": load}, {"a": runtime})
    turn = Turn(ReadSet(policy, facts), NOW, evolve_assignment)
    word: Word = standing(cell, load, runtime, NOW, policy).word
    assert (Ranking().choose(turn, cell.region) is not None) == (word == "open")
