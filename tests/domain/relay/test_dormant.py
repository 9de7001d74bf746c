"""A host with nothing counted and no activity for 24 hours may be placed anew, or rebalanced."""

import pytest

from domain.refusals import (
    AssignmentActive,
    AssignmentNotFound,
    RelayCapacityExhausted,
    RelayConnectionHeadroomExhausted,
    TargetCellUnavailable,
    TargetMatchesSource,
)
from domain.relay.activity import ReleaseActivity
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.assignment import Counts, Lease, Opened
from domain.relay.cell import Admission
from domain.relay.control import ActivateControl
from domain.relay.placement import Grant, HostPlaced
from domain.relay.turn import Load
from tests.domain.relay.fleet import (
    DAY,
    HOST,
    LEASE,
    active,
    cell,
    lasting,
    limited,
    report,
    settled,
)
from tests.domain.scenario import LIVE_CELLS, Scenario, given, like


def dormant_on_a(*, capacity: int = 10) -> Scenario:
    """Dormant from time 24 h on."""
    return given(
        cell("a"), cell("b", capacity=capacity), *settled(HOST, "a"), active(HOST, since=0)
    )


def test_it_goes_where_the_load_is_least() -> None:
    (
        dormant_on_a()
        .given(report("a", at=0, observed=2))
        .when(Assign(HOST), at=DAY)
        .then(like(HostPlaced, reason="dormant", cell_id="b", epoch=2, previous_cell_id="a"))
        .then_load("b", 1, 1)
    )


@pytest.mark.parametrize(("age", "placed"), [(DAY - 1, False), (DAY, True)])
def test_the_boundary_is_exactly_24_hours(age: int, placed: bool) -> None:
    decided = dormant_on_a().when(Assign(HOST), at=age)
    decided.then_answers(like(Grant, epoch=2 if placed else 1))


def test_it_may_be_placed_on_the_same_cell_again() -> None:
    (
        dormant_on_a()
        .when(Assign(HOST), at=DAY)
        .then(like(HostPlaced, cell_id="a", previous_cell_id="a", epoch=2))
    )


def test_leases_that_were_never_taken_back_stay() -> None:
    stray = {"splice:9": Lease("splice", "a", 2)}
    (
        given(cell("a"), cell("b"), report("a", at=0, observed=5))
        .given(*settled(HOST, "a", leases=stray, loads={"a": Load(0, 2)}))
        .given(active(HOST, since=0), lasting(HOST, "splice:9", until=DAY * 2))
        .when(Assign(HOST), at=DAY)
        .then(like(HostPlaced, cell_id="b", dropped_activity_ids=(), counts=Counts(1)))
        .then_leases(HOST, "splice:9", "control-pending:2")
        .then_load("a", 0, 2)
    )


def test_connections_of_the_left_epoch_are_released() -> None:
    (
        given(limited("a"), cell("b"))
        .given(*settled(HOST, "a", connection=Opened(1, 90), loads={"a": Load(0, 0, 1)}))
        .given(active(HOST, since=0))
        .when(Assign(HOST), at=DAY)
        .then(like(HostPlaced, cell_id="b", released_connections=(1,), connection=None))
        .then_load("a", 0, 0, connections=0)
        .then_connections(HOST)
    )


def test_without_room_anywhere_it_is_refused() -> None:
    (
        given(cell("a", admission="existing-only"), *settled(HOST, "a"), active(HOST, since=0))
        .when(Assign(HOST), at=DAY)
        .then_refused(RelayCapacityExhausted, region="us-central1")
    )


def test_a_place_on_a_cell_over_its_lowered_capacity_can_only_be_left_by_rebalancing() -> None:
    (
        given(cell("a", capacity=1), cell("b"), active(HOST, since=0))
        .given(*settled(HOST, "a", loads={"a": Load(2)}))
        .when(Assign(HOST), at=DAY)
        .then_refused(RelayCapacityExhausted, cell_id="a", capacity_units=1, reserved_units=2)
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then(like(HostPlaced, cell_id="b"))
        .then_load("a", 2, 0)
    )


# rebalancing


def test_rebalancing_needs_full_inactivity() -> None:
    (
        given(cell("a"), cell("b"))
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
        .when(RebalanceDormant(HOST, "b"), at=200)
        .then_refused(AssignmentActive, cell_id="a", epoch=1)
        .after(ReleaseActivity(HOST, "control:a:1"), at=300)
        .when(RebalanceDormant(HOST, "b"), at=300 + DAY - 1)
        .then_refused(AssignmentActive)
        .when(RebalanceDormant(HOST, "b"), at=300 + DAY)
        .then(like(HostPlaced, reason="rebalanced", cell_id="b", epoch=2, counts=Counts(1)))
        .then_answers(like(Grant, cell_id="b", epoch=2, lease_expires_at=300 + DAY + LEASE))
        .then_touched(active(HOST, since=300 + DAY))
        .then_load("a", 0, 0)
        .then_load("b", 1, 1)
    )


def test_a_counter_without_a_lease_keeps_it_too() -> None:
    (
        given(cell("a"), cell("b"), *settled(HOST, "a", counts=Counts(invites=1)))
        .given(active(HOST, since=0))
        .when(RebalanceDormant(HOST, "b"), at=2 * DAY)
        .then_refused(AssignmentActive)
    )


def test_an_unknown_host_is_not_rebalanced() -> None:
    given(cell("a")).when(RebalanceDormant(HOST, "a"), at=0).then_refused(AssignmentNotFound)


def test_not_onto_its_own_cell() -> None:
    (
        dormant_on_a()
        .when(RebalanceDormant(HOST, "a"), at=DAY)
        .then_refused(TargetMatchesSource, cell_id="a")
    )


@pytest.mark.parametrize("admission", ["existing-only", "migration-only"])
def test_only_onto_a_general_cell(admission: Admission) -> None:
    (
        given(cell("a"), cell("b", admission=admission), *settled(HOST, "a"))
        .given(active(HOST, since=0))
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then_refused(TargetCellUnavailable, cell_id="b")
        .when(RebalanceDormant(HOST, "nowhere"), at=DAY)
        .then_refused(TargetCellUnavailable, cell_id="nowhere")
    )


def test_only_onto_a_live_cell() -> None:
    (
        given(cell("a"), cell("b"), *settled(HOST, "a"), policy=LIVE_CELLS)
        .given(active(HOST, since=0))
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then_refused(TargetCellUnavailable)
        .given(report("b", at=DAY))
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then(like(HostPlaced, cell_id="b"))
    )


def test_only_onto_a_cell_with_headroom() -> None:
    (
        given(cell("a"), limited("b"), *settled(HOST, "a", epoch=7), active(HOST, since=0))
        .given(report("b", at=DAY, enforced=450))
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then_refused(RelayConnectionHeadroomExhausted, cell_id="b")
        .then_holds(HOST, cell_id="a", epoch=7, leases={})
        .given(report("b", at=DAY, enforced=449))
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then(like(HostPlaced, cell_id="b", epoch=8, connection=Opened(1, DAY + LEASE)))
    )


def test_only_onto_a_cell_with_room() -> None:
    (
        dormant_on_a(capacity=1)
        .given(*settled(HOST._replace(user_id="dan"), "b", loads={"b": Load(1, 1)}))
        .when(RebalanceDormant(HOST, "b"), at=DAY)
        .then_refused(RelayCapacityExhausted, cell_id="b", capacity_units=1, reserved_units=1)
    )
