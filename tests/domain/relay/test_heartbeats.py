"""A cell says that it runs. Its incarnations follow each other and never come back."""

import pytest

from domain.refusals import (
    CellNotFound,
    CellOriginMismatch,
    CellRegionMismatch,
    StaleCellIncarnation,
)
from domain.relay.cell import CellStarted
from domain.relay.heartbeat import RecordRehomeStatus
from domain.relay.runtime import (
    CellRuntime,
    Heartbeat,
    RehomeCapability,
    RehomeSafety,
    TouchRuntime,
)
from tests.domain.relay.fleet import beat, cell, report, started, url
from tests.domain.scenario import LIVE_CELLS, given


def test_the_first_one_starts_the_cell() -> None:
    (
        given(cell("a"), policy=LIVE_CELLS)
        .when(beat("a", observed=3), at=100)
        .then(
            CellStarted(
                at=100,
                cell_id="a",
                cell_incarnation="one",
                started_at=50,
                previous_incarnation=None,
            )
        )
        .then_answers(None)
        .then_touches(
            TouchRuntime("a", CellRuntime(0, Heartbeat(url("a"), "one", 50, True, 3, 100)))
        )
    )


def test_the_next_ones_are_only_heard() -> None:
    (
        given(cell("a"), policy=LIVE_CELLS)
        .after(beat("a"), at=100)
        .when(beat("a", ready=False, observed=4), at=200)
        .then()
        .then_touches(
            TouchRuntime("a", CellRuntime(0, Heartbeat(url("a"), "one", 50, False, 4, 200)))
        )
    )


def test_observed_requests_count_on_their_own_only_without_live_cells() -> None:
    (
        given(cell("a"))
        .when(beat("a", observed=3), at=100)
        .then_touches(
            TouchRuntime("a", CellRuntime(3, Heartbeat(url("a"), "one", 50, True, 3, 100)))
        )
    )


def test_an_unknown_cell_is_not_heard() -> None:
    given().when(beat("a"), at=0).then_refused(CellNotFound, cell_id="a")


def test_it_must_come_from_the_configured_origin() -> None:
    (
        given(cell("a"))
        .when(beat("a", cell_url="https://elsewhere.test"), at=0)
        .then_refused(CellOriginMismatch, cell_id="a")
    )


def test_it_must_come_from_the_configured_region() -> None:
    (
        given(cell("a", region="asia-east2"))
        .when(beat("a"), at=0)
        .then_refused(CellRegionMismatch, cell_id="a", region="asia-east2")
        .when(beat("a", region="asia-east2"), at=0)
        .then_accepted()
    )


@pytest.mark.parametrize(
    ("incarnation", "started_at", "fresh"),
    [
        ("one", 50, True),
        ("one", 49, False),
        ("one", 51, False),
        ("two", 49, False),
        ("two", 50, False),
        ("two", 51, True),
    ],
)
def test_another_incarnation_must_have_started_strictly_later(
    incarnation: str, started_at: int, fresh: bool
) -> None:
    decided = given(cell("a"), started("a", "one", at=50)).when(
        beat("a", incarnation=incarnation, started_at=started_at), at=100
    )
    if fresh:
        decided.then_accepted()
    else:
        decided.then_refused(StaleCellIncarnation, cell_id="a", started_at=50)


def test_an_incarnation_that_was_replaced_does_not_come_back() -> None:
    (
        given(cell("a"))
        .after(beat("a"), at=100)
        .when(beat("a", incarnation="two", started_at=51), at=200)
        .then(
            CellStarted(
                at=200,
                cell_id="a",
                cell_incarnation="two",
                started_at=51,
                previous_incarnation="one",
            )
        )
        .when(beat("a"), at=300)
        .then_refused(StaleCellIncarnation, started_at=51)
    )


def test_the_rules_are_judged_in_the_order_origin_region_incarnation() -> None:
    scenario = given(cell("a"), started("a", at=50))
    wrong = beat("a", cell_url="x", region="asia-east2", started_at=0)
    scenario.when(wrong, at=100).then_refused(CellOriginMismatch)
    wrong = beat("a", region="asia-east2", started_at=0)
    scenario.when(wrong, at=100).then_refused(CellRegionMismatch)


# rehome status


def status(incarnation: str = "one", cell_id: str = "a") -> RecordRehomeStatus:
    return RecordRehomeStatus(cell_id, incarnation, 3, 90, 1, 2, 3, 4, 5, 6)


def test_the_running_incarnation_tells_its_protocol_and_health() -> None:
    known = report("a", at=60, observed=2).runtime
    (
        given(cell("a"), started("a"), report("a", at=60, observed=2))
        .when(status(), at=100)
        .then()
        .then_touches(
            TouchRuntime(
                "a",
                CellRuntime(
                    2,
                    known.heartbeat,
                    None,
                    RehomeCapability("one", 3, 100),
                    RehomeSafety("one", 90, 1, 2, 3, 4, 5, 6),
                ),
            )
        )
    )


def test_no_other_incarnation_may_tell_it() -> None:
    (
        given(cell("a"))
        .when(status(), at=100)
        .then_refused(StaleCellIncarnation, cell_id="a")
        .given(started("a"))
        .when(status("zero"), at=100)
        .then_refused(StaleCellIncarnation)
        .when(status(cell_id="nowhere"), at=100)
        .then_refused(StaleCellIncarnation, cell_id="nowhere")
    )


def test_a_heartbeat_keeps_what_was_told_of_rehoming() -> None:
    (
        given(cell("a"))
        .after(beat("a"), at=50)
        .after(status(), at=60)
        .when(beat("a"), at=70)
        .then_touches(
            TouchRuntime(
                "a",
                CellRuntime(
                    0,
                    Heartbeat(url("a"), "one", 50, True, 0, 70),
                    None,
                    RehomeCapability("one", 3, 60),
                    RehomeSafety("one", 90, 1, 2, 3, 4, 5, 6),
                ),
            )
        )
    )
