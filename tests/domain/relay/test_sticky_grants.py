"""A host that is not free to move keeps its cell, and its cell keeps one unit for its control."""

from domain.refusals import RelayCapacityExhausted
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease, Shift
from domain.relay.control import ActivateControl
from domain.relay.placement import ControlRegranted, Grant, HostPlaced
from domain.relay.turn import Load
from tests.domain.relay.fleet import (
    DAY,
    HOST,
    LEASE,
    OTHER,
    PENDING,
    active,
    cell,
    lasting,
    limited,
    report,
    settled,
)
from tests.domain.scenario import given, like


def test_a_second_assign_gives_the_same_and_reserves_nothing() -> None:
    (
        given(cell("a", capacity=2), cell("b", capacity=2))
        .after(Assign(HOST), at=100)
        .when(Assign(HOST), at=100)
        .then()
        .then_answers(like(Grant, cell_id="a", epoch=1, lease_expires_at=100 + LEASE))
        .then_load("a", 1, 1)
        .then_load("b", 0, 0)
    )


def test_it_extends_the_hosts_lease_but_not_its_controls() -> None:
    (
        given(cell("a"))
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
        .when(Assign(HOST), at=40_000)
        .then()
        .then_touches(active(HOST, since=40_000))
        .then_answers(like(Grant, lease_expires_at=130_000))
    )


def test_it_never_shortens_the_hosts_lease() -> None:
    (
        given(cell("a"))
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
        .given(active(HOST, since=100, until=900_100))
        .when(Assign(HOST), at=1_000)
        .then_touches(active(HOST, since=1_000, until=900_100))
        .then_answers(like(Grant, lease_expires_at=91_000))
    )


def test_a_released_control_is_reserved_again() -> None:
    (
        given(cell("a"))
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
        .after(ReleaseActivity(HOST, "control:a:1"), at=200)
        .when(Assign(HOST), at=300)
        .then(
            ControlRegranted(
                at=300,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", 1, 1, 1, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(controls=1),
                activity_id=PENDING,
                lease=Lease("control", "a", 1),
            )
        )
        .then_touches(active(HOST, since=300), lasting(HOST, PENDING, until=300 + LEASE, told=300))
        .then_answers(like(Grant, cell_id="a", epoch=1))
        .then_leases(HOST, PENDING)
    )


def test_any_counter_above_zero_keeps_the_host() -> None:
    (
        given(cell("a"), cell("b"), report("a", at=0, observed=2))
        .given(*settled(HOST, "a", counts=Counts(migrations=1), loads={"a": Load(1)}))
        .given(active(HOST, since=100))
        .when(Assign(HOST), at=100 + DAY + 1)
        .then(like(ControlRegranted, cell_id="a", epoch=1, counts=Counts(1, migrations=1)))
    )


def test_a_control_that_appeared_meanwhile_is_enough() -> None:
    leases = {"control:a:1": Lease("control", "a", 1), PENDING: Lease("control", "a", 1)}
    (
        given(cell("a"), *settled(HOST, "a", counts=Counts(2), leases=leases))
        .given(active(HOST, since=0, until=50))
        .when(Assign(HOST), at=DAY)
        .then()
        .then_touches(active(HOST, since=DAY))
    )


def test_a_splice_alone_is_no_control() -> None:
    splice = {"splice:1": Lease("splice", "a", 2)}
    (
        given(cell("a"))
        .given(*settled(HOST, "a", counts=Counts(splices=1), leases=splice))
        .given(active(HOST, since=0))
        .when(Assign(HOST), at=DAY)
        .then(like(ControlRegranted, cell_id="a", counts=Counts(1, 1)))
        .then_leases(HOST, PENDING, "splice:1")
    )


def test_a_control_on_another_cell_does_not_satisfy_this_one() -> None:
    elsewhere = {"control:a:1": Lease("control", "a", 1)}
    (
        given(cell("a"), cell("b"))
        .given(*settled(HOST, "b", epoch=2, counts=Counts(1), leases=elsewhere))
        .given(active(HOST, since=100))
        .when(Assign(HOST), at=200)
        .then(like(ControlRegranted, cell_id="b", epoch=2, counts=Counts(2)))
        .then_leases(HOST, "control:a:1", "control-pending:2")
        .then_load("b", 1, 1)
    )


def test_a_pending_control_of_an_older_epoch_does_not_count() -> None:
    older = {PENDING: Lease("control", "a", 1)}
    (
        given(cell("a"), *settled(HOST, "a", epoch=3, counts=Counts(1), leases=older))
        .given(*settled(OTHER, "a", loads={"a": Load(1, 1)}), active(HOST, since=100))
        .when(Assign(HOST), at=200)
        .then(like(ControlRegranted, epoch=3, counts=Counts(2)))
        .then_leases(HOST, PENDING, "control-pending:3")
        .then_load("a", 2, 2)
    )


def test_a_lease_that_took_the_pending_id_keeps_its_kind() -> None:
    taken = {PENDING: Lease("splice", "a", 2)}
    (
        given(cell("a"))
        .given(*settled(HOST, "a", counts=Counts(0, 1), leases=taken, loads={"a": Load(2, 2)}))
        .given(active(HOST, since=100))
        .when(Assign(HOST), at=200)
        .then(like(ControlRegranted, lease=Lease("splice", "a", 2), counts=Counts(1, 1)))
        .then_load("a", 3, 2)
    )


def test_a_regrant_needs_room_too() -> None:
    (
        given(cell("a", capacity=2), *settled(HOST, "a", loads={"a": Load(2)}))
        .given(active(HOST, since=100))
        .when(Assign(HOST), at=200)
        .then_refused(RelayCapacityExhausted, cell_id="a", capacity_units=2, reserved_units=2)
    )


def test_on_a_limited_cell_one_expected_connection_is_reserved_once() -> None:
    (
        given(limited("a"), report("a", at=0, enforced=448))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, connection=(1, 100 + LEASE)))
        .after(ReleaseActivity(HOST, PENDING), at=200)
        .when(Assign(HOST), at=300)
        .then(like(ControlRegranted, connection=None))
        .then_load("a", 1, 1, connections=1)
    )


def test_a_restored_host_without_volatile_rows_counts_as_just_active() -> None:
    (
        given(cell("a"), cell("b"), *settled(HOST, "a"))
        .when(Assign(HOST), at=10 * DAY)
        .then(like(ControlRegranted, cell_id="a", epoch=1))
        .then_touched(active(HOST, since=10 * DAY))
    )


def test_activity_of_others_changes_nothing() -> None:
    (
        given(cell("a"))
        .after(Assign(HOST), Assign(OTHER), at=100)
        .after(AcquireActivity(OTHER, "s", "splice", "a"), at=100)
        .when(Assign(HOST), at=200)
        .then()
        .then_holds(HOST, counts=Counts(1))
    )
