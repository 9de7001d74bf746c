"""A host without a place gets one on the least loaded cell that may take it."""

import pytest

from domain.refusals import RelayCapacityExhausted
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease, Shift
from domain.relay.cell import Admission
from domain.relay.placement import Grant, HostPlaced
from domain.relay.runtime import TouchPreference
from tests.domain.relay.fleet import (
    HOST,
    LEASE,
    OTHER,
    PENDING,
    THIRD,
    TTL,
    active,
    admitted,
    cell,
    lasting,
    limited,
    report,
    url,
)
from tests.domain.scenario import LIVE_CELLS, given, like


def test_a_placement_tells_all_it_saw_and_did() -> None:
    (
        given(cell("a", capacity=4), cell("b", capacity=8), report("b", at=90, observed=1))
        .when(Assign(HOST), at=100)
        .then(
            HostPlaced(
                at=100,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", 1, 1, 1, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(controls=1),
                reason="new",
                previous_cell_id=None,
                region="us-central1",
                candidates=(("a", 0, 0, 4), ("b", 0, 1, 8)),
                more_candidates=0,
                activity_id=PENDING,
                lease=Lease("control", "a", 1),
            )
        )
        .then_touches(active(HOST, since=100), lasting(HOST, PENDING, until=100 + LEASE, told=100))
        .then_answers(Grant("ada", "desktop", "a", url("a"), "us-central1", 1, 100 + LEASE))
    )


def test_a_tie_goes_to_the_lower_id_and_then_to_the_less_loaded() -> None:
    (
        given(cell("b"), cell("a"))
        .when(Assign(HOST), at=100)
        .then_answers(like(Grant, cell_id="a"))
        .when(Assign(OTHER), at=100)
        .then_answers(like(Grant, cell_id="b"))
        .then_load("a", 1, 1)
        .then_load("b", 1, 1)
    )


def test_a_placement_tells_the_chosen_cell_and_the_three_next_in_load_whatever_their_region() -> (
    None
):
    (
        given(
            cell("far-full", capacity=1, region="asia-east2"),
            cell("far", region="asia-east2"),
            *(cell(cell_id) for cell_id in "abcd"),
        )
        .after(Assign(OTHER, "asia-east2"), at=100)
        .when(Assign(HOST), at=100)
        .then(
            like(
                HostPlaced,
                cell_id="a",
                candidates=(("a", 0, 0, 10), ("b", 0, 0, 10), ("c", 0, 0, 10), ("d", 0, 0, 10)),
                more_candidates=2,
            )
        )
        .when(Assign(THIRD, "asia-east2"), at=100)
        .then(
            like(
                HostPlaced,
                cell_id="far-full",
                candidates=(
                    ("far-full", 0, 0, 1),
                    ("b", 0, 0, 10),
                    ("c", 0, 0, 10),
                    ("d", 0, 0, 10),
                ),
                more_candidates=2,
            )
        )
    )


def test_load_is_a_share_of_the_capacity() -> None:
    (
        given(cell("a", capacity=2), cell("b", capacity=100))
        .after(Assign(HOST), at=100)
        .after(Assign(OTHER), at=100)
        .when(Assign(THIRD), at=100)
        .then(like(HostPlaced, cell_id="b", candidates=(("b", 1, 0, 100), ("a", 1, 0, 2))))
    )


def test_observed_requests_count_as_load() -> None:
    (
        given(cell("a"), cell("b"), report("a", at=100, observed=1))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, cell_id="b"))
    )


def test_the_last_unit_is_given_and_no_more() -> None:
    (
        given(cell("a", capacity=2))
        .after(Assign(HOST), Assign(OTHER), at=100)
        .when(Assign(THIRD), at=100)
        .then_refused(RelayCapacityExhausted, region="us-central1")
        .then_load("a", 2, 2)
    )


def test_no_cell_at_all_is_no_room() -> None:
    given().when(Assign(HOST), at=100).then_refused(RelayCapacityExhausted)


@pytest.mark.parametrize("admission", ["existing-only", "migration-only"])
def test_only_general_cells_take_new_hosts(admission: Admission) -> None:
    (
        given(cell("a", admission=admission), cell("b"))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, cell_id="b", candidates=(("b", 0, 0, 10),)))
        .given(admitted("b", admission))
        .when(Assign(OTHER), at=100)
        .then_refused(RelayCapacityExhausted)
    )


def test_closing_a_cell_keeps_its_hosts() -> None:
    (
        given(cell("a"), cell("b"))
        .after(Assign(HOST), at=100)
        .given(admitted("a", "existing-only"))
        .when(Assign(HOST), at=200)
        .then_answers(like(Grant, cell_id="a", epoch=1))
    )


def test_hosts_are_told_apart_by_user_and_host_id() -> None:
    same_host_id = HOST._replace(user_id="bob")
    (
        given(cell("a"))
        .after(Assign(HOST), at=100)
        .when(Assign(same_host_id), at=100)
        .then(like(HostPlaced, reason="new", user_id="bob", epoch=1))
        .then_holds(HOST, user_id="ada", epoch=1)
    )


# live cells


def test_a_cell_must_be_heard_and_ready() -> None:
    (
        given(cell("a"), policy=LIVE_CELLS)
        .when(Assign(HOST), at=100)
        .then_refused(RelayCapacityExhausted)
        .given(report("a", at=100, ready=False))
        .when(Assign(HOST), at=100)
        .then_refused(RelayCapacityExhausted)
        .given(report("a", at=100))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, cell_id="a", last_heartbeat_seen_at=None))
    )


@pytest.mark.parametrize(("age", "alive"), [(TTL - 1, True), (TTL, False), (TTL + 1, False)])
def test_a_heartbeat_as_old_as_the_ttl_is_stale(age: int, alive: bool) -> None:
    decided = given(cell("a"), report("a", at=100), policy=LIVE_CELLS).when(
        Assign(HOST), at=100 + age
    )
    if alive:
        decided.then(like(HostPlaced, cell_id="a"))
    else:
        decided.then_refused(RelayCapacityExhausted)


def test_a_remembered_judgement_ends_with_the_heartbeat() -> None:
    (
        given(cell("a"), cell("b"), report("a", at=200), report("b", at=100), policy=LIVE_CELLS)
        .when(Assign(HOST), at=200)
        .then(like(HostPlaced, cell_id="a"))
        .when(Assign(OTHER), at=100 + TTL)
        .then(like(HostPlaced, cell_id="a", candidates=(("a", 1, 0, 10),)))
        .when(Assign(THIRD), at=200 + TTL)
        .then_refused(RelayCapacityExhausted)
    )


def test_a_remembered_judgement_of_a_limited_cell_ends_with_its_snapshot_too() -> None:
    (
        given(cell("a"), limited("b"), policy=LIVE_CELLS)
        .given(report("a", at=200), report("b", at=200, enforced=0, snapshot_at=100))
        .when(Assign(HOST), at=200)
        .then(like(HostPlaced, cell_id="a", candidates=(("a", 0, 0, 10), ("b", 0, 0, 10_000))))
        .when(Assign(OTHER), at=100 + TTL)
        .then(like(HostPlaced, cell_id="a", candidates=(("a", 1, 0, 10),)))
    )


# regions


def test_the_wanted_region_comes_first_and_us_is_the_default() -> None:
    (
        given(cell("east", region="asia-east2"), cell("us"))
        .when(Assign(HOST, "asia-east2"), at=100)
        .then(like(HostPlaced, cell_id="east", region="asia-east2"))
        .when(Assign(OTHER), at=100)
        .then(like(HostPlaced, cell_id="us", region="us-central1"))
    )


def test_the_wanted_region_is_filled_before_another_takes_over() -> None:
    (
        given(cell("east", region="asia-east2", capacity=2), cell("us", capacity=100))
        .after(Assign(HOST, "asia-east2"), at=100)
        .when(Assign(OTHER, "asia-east2"), at=100)
        .then(like(HostPlaced, cell_id="east"))
        .when(Assign(HOST._replace(user_id="dan"), "asia-east2"), at=100)
        .then(like(HostPlaced, cell_id="us", region="asia-east2"))
    )


def test_the_placement_region_steers_and_the_preference_is_only_remembered() -> None:
    (
        given(cell("east", region="asia-east2"), cell("us"))
        .when(Assign(HOST, "asia-east2", placement_region="us-central1"), at=100)
        .then(like(HostPlaced, cell_id="us", region="us-central1"))
        .then_touched(TouchPreference(*HOST, "asia-east2", 100))
    )
