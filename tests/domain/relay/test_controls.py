"""A host attaches: its control takes over the pending lease and ends older controls of the cell."""

import pytest

from domain.refusals import (
    ActivityLeaseShapeMismatch,
    InvalidActivityId,
    RelayCapacityExhausted,
    WrongAssignment,
)
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.assignment import Control, Counts, Lease, Shift
from domain.relay.control import ActivateControl, ControlActivated
from domain.relay.turn import Load
from tests.domain.relay.fleet import (
    HOST,
    LEASE,
    OTHER,
    PENDING,
    active,
    cell,
    ended,
    lasting,
    settled,
)
from tests.domain.scenario import Scenario, given, like

CONTROL = Lease("control", "a", 1)


def assigned() -> Scenario:
    return given(cell("a"), cell("b")).after(Assign(HOST), at=100)


def test_the_pending_lease_becomes_the_control() -> None:
    (
        assigned()
        .when(ActivateControl(HOST, "a", 1, 1, True, "one"), at=200)
        .then(
            ControlActivated(
                at=200,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(),
                cell_id="a",
                epoch=1,
                counts=Counts(controls=1),
                activity_id="control:a:1",
                generation=1,
                lease=CONTROL,
                renamed_from=PENDING,
                superseded_activity_ids=(),
                cell_incarnation="one",
                idle_regional_rehome=True,
                forgotten_controls=(),
                reclaimed_connections=(),
                claimed_connection=None,
            )
        )
        .then_answers("control:a:1")
        .then_touches(
            ended(HOST, PENDING),
            active(HOST, since=200),
            lasting(HOST, "control:a:1", until=200 + LEASE, told=200),
        )
        .then_load("a", 1, 1)
        .then_leases(HOST, "control:a:1")
    )


def test_activating_again_changes_nothing_but_the_deadlines() -> None:
    (
        assigned()
        .after(ActivateControl(HOST, "a", 1, 1), at=200)
        .when(ActivateControl(HOST, "a", 1, 1), at=300)
        .then()
        .then_answers("control:a:1")
        .then_touches(
            active(HOST, since=300), lasting(HOST, "control:a:1", until=300 + LEASE, told=300)
        )
        .then_load("a", 1, 1)
    )


def test_a_new_announcement_of_the_same_control_is_an_event() -> None:
    (
        assigned()
        .after(ActivateControl(HOST, "a", 1, 1), at=200)
        .when(ActivateControl(HOST, "a", 1, 1, cell_incarnation="two"), at=300)
        .then(like(ControlActivated, renamed_from=None, cell_incarnation="two", shifts=()))
        .then_holds(HOST, controls={"control:a:1": Control("a", "two", 1, 1, False)})
    )


def test_rehoming_is_announced_only_by_a_named_incarnation() -> None:
    (
        assigned()
        .when(ActivateControl(HOST, "a", 1, 1, idle_regional_rehome=True), at=200)
        .then(like(ControlActivated, idle_regional_rehome=False, cell_incarnation=""))
    )


def test_without_a_pending_lease_it_reserves_anew() -> None:
    (
        assigned()
        .after(ReleaseActivity(HOST, PENDING), at=200)
        .when(ActivateControl(HOST, "a", 1, 5), at=300)
        .then(like(ControlActivated, renamed_from=None, shifts=(Shift("a", 1, 1, 1, 0),)))
        .then_holds(HOST, counts=Counts(1), leases={"control:a:5": CONTROL})
    )


def test_without_room_it_is_refused() -> None:
    (
        given(cell("a", capacity=1), *settled(HOST, "a", loads={"a": Load(1, 1)}))
        .when(ActivateControl(HOST, "a", 1, 1), at=0)
        .then_refused(RelayCapacityExhausted, cell_id="a", capacity_units=1, reserved_units=1)
    )


@pytest.mark.parametrize(("cell_id", "epoch"), [("b", 1), ("a", 2), ("a", 0)])
def test_it_must_be_the_hosts_cell_and_epoch(cell_id: str, epoch: int) -> None:
    (
        assigned()
        .when(ActivateControl(HOST, cell_id, epoch, 1), at=200)
        .then_refused(WrongAssignment, cell_id=cell_id, epoch=epoch)
        .when(ActivateControl(OTHER, "a", 1, 1), at=200)
        .then_refused(WrongAssignment)
    )


def test_the_control_must_have_a_name_that_is_not_too_long() -> None:
    (
        given()
        .when(ActivateControl(HOST, "c" * 250, 1, 1), at=0)
        .then_refused(InvalidActivityId, length=260)
    )


# supersession


def test_a_newer_control_ends_the_older_ones_of_its_cell_only() -> None:
    leases = {
        "control:a:1": CONTROL,
        "control:b:2": Lease("control", "b", 1),
        "control:b:3": Lease("control", "b", 1),
        "migration:2": Lease("migration", "b", 1),
    }
    (
        given(cell("a"), cell("b"))
        .given(*settled(HOST, "b", epoch=2, counts=Counts(3, migrations=1), leases=leases))
        .given(*settled(OTHER, "b", loads={"a": Load(1, 1), "b": Load(4, 3)}))
        .when(ActivateControl(HOST, "b", 2, 4), at=200)
        .then(
            like(
                ControlActivated,
                superseded_activity_ids=("control:b:2", "control:b:3"),
                counts=Counts(2, migrations=1),
                renamed_from=None,
            )
        )
        .then_touched(ended(HOST, "control:b:2"), ended(HOST, "control:b:3"))
        .then_leases(HOST, "control:a:1", "control:b:4", "migration:2")
        .then_load("a", 1, 1)
        .then_load("b", 2, 2)
    )


def test_it_takes_over_the_pending_lease_and_ends_the_control_before() -> None:
    (
        assigned()
        .after(ActivateControl(HOST, "a", 1, 1), at=200)
        .after(AcquireActivity(HOST, PENDING, "control", "a"), at=300)
        .when(ActivateControl(HOST, "a", 1, 2), at=400)
        .then(
            like(
                ControlActivated,
                renamed_from=PENDING,
                superseded_activity_ids=("control:a:1",),
                forgotten_controls=("control:a:1",),
                counts=Counts(1),
            )
        )
        .then_leases(HOST, "control:a:2")
        .then_load("a", 1, 1)
    )


def test_an_older_generation_may_come_back_and_ends_the_newer() -> None:
    (
        assigned()
        .after(ActivateControl(HOST, "a", 1, 2), at=200)
        .when(ActivateControl(HOST, "a", 1, 1), at=300)
        .then(like(ControlActivated, superseded_activity_ids=("control:a:2",)))
        .then_leases(HOST, "control:a:1")
    )


def test_supersession_recounts_the_cell_from_its_leases() -> None:
    """Raw counters of others are lost on the cell; that is the original's repair."""
    leases = {"control:a:1": CONTROL, "control:a:2": CONTROL}
    (
        given(cell("a"))
        .given(*settled(HOST, "a", counts=Counts(2), leases=leases, loads={"a": Load(9, 4)}))
        .when(ActivateControl(HOST, "a", 1, 2), at=0)
        .then(like(ControlActivated, shifts=(Shift("a", -6, 3, 3, 0),), counts=Counts(1)))
    )


def test_a_recount_above_a_lowered_capacity_is_refused() -> None:
    leases = {"control:a:1": CONTROL, "control:a:2": CONTROL}
    (
        given(cell("a", capacity=2))
        .given(*settled(HOST, "a", counts=Counts(2), leases=leases, loads={"a": Load(0, 4)}))
        .when(ActivateControl(HOST, "a", 1, 2), at=0)
        .then_refused(RelayCapacityExhausted, cell_id="a", capacity_units=2)
    )


def test_a_control_of_another_weight_is_not_superseded() -> None:
    leases = {"control:a:1": Lease("control", "a", 2)}
    (
        given(cell("a"), *settled(HOST, "a", counts=Counts(1), leases=leases))
        .when(ActivateControl(HOST, "a", 1, 2), at=0)
        .then_refused(ActivityLeaseShapeMismatch, activity_id="control:a:1", units=2)
        .then_leases(HOST, "control:a:1")
    )


def test_an_announcement_outlives_its_lease_until_the_next_activation() -> None:
    (
        assigned()
        .after(ActivateControl(HOST, "a", 1, 1), at=200)
        .after(ReleaseActivity(HOST, "control:a:1"), at=300)
        .when(ActivateControl(HOST, "a", 1, 2), at=400)
        .then(like(ControlActivated, forgotten_controls=("control:a:1",)))
        .then_holds(HOST, controls={"control:a:2": Control("a", "", 1, 2, False)})
    )


def test_leases_of_the_cell_that_are_no_controls_stay() -> None:
    (
        assigned()
        .after(ActivateControl(HOST, "a", 1, 1), at=200)
        .after(AcquireActivity(HOST, "s", "splice", "a"), at=200)
        .when(ActivateControl(HOST, "a", 1, 2), at=300)
        .then(like(ControlActivated, counts=Counts(1, 1)))
        .then_leases(HOST, "control:a:2", "s")
        .then_load("a", 3, 3)
    )
