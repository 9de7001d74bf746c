"""Counters may be raised and lowered without a lease; then units and leases differ on purpose."""

import pytest

from domain.refusals import RelayCapacityExhausted
from domain.relay.activity import ActivityCounted, ChangeActivity
from domain.relay.assign import Assign
from domain.relay.assignment import KINDS, REQUEST_UNITS, Counts, Kind, Shift
from domain.relay.turn import Load
from tests.domain.relay.fleet import HOST, LEASE, OTHER, active, cell, settled
from tests.domain.scenario import given, like


def test_raising_a_counter_takes_units_but_no_lease() -> None:
    (
        given(cell("a"))
        .after(Assign(HOST), at=100)
        .when(ChangeActivity(HOST, "splice", 1), at=200)
        .then(
            ActivityCounted(
                at=200,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", 2, 3, 1, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(controls=1, splices=1),
                kind="splice",
                delta=1,
            )
        )
        .then_touches(active(HOST, since=200))
        .then_answers(None)
        .then_leases(HOST, "control-pending:1")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_up_and_down(kind: Kind) -> None:
    weight = REQUEST_UNITS[kind]
    (
        given(cell("a"), *settled(HOST, "a"))
        .when(ChangeActivity(HOST, kind, 1), at=0)
        .then(like(ActivityCounted, counts=Counts().plus(kind, 1), kind=kind))
        .then_load("a", weight, 0)
        .when(ChangeActivity(HOST, kind, -1), at=0)
        .then(like(ActivityCounted, counts=Counts(), delta=-1))
        .then_load("a", 0, 0)
    )


def test_a_counter_never_goes_below_zero_but_activity_is_noted() -> None:
    (
        given(cell("a"), *settled(HOST, "a"))
        .when(ChangeActivity(HOST, "invite", -1), at=700)
        .then()
        .then_touches(active(HOST, since=700))
    )


def test_a_cell_never_holds_less_than_nothing() -> None:
    (
        given(cell("a"), *settled(HOST, "a", counts=Counts(splices=1), loads={"a": Load(1)}))
        .when(ChangeActivity(HOST, "splice", -1), at=0)
        .then(like(ActivityCounted, shifts=(Shift("a", -2, 0, 0, 0),)))
    )


def test_the_hosts_lease_may_be_shortened() -> None:
    (
        given(cell("a"), *settled(HOST, "a"), active(HOST, since=0, until=900_000))
        .when(ChangeActivity(HOST, "invite", 1), at=100)
        .then_touches(active(HOST, since=100, until=100 + LEASE))
    )


def test_raising_needs_room_and_lowering_never_does() -> None:
    (
        given(cell("a", capacity=2), *settled(HOST, "a", counts=Counts(1), loads={"a": Load(5)}))
        .when(ChangeActivity(HOST, "invite", 1), at=0)
        .then_refused(RelayCapacityExhausted, cell_id="a", capacity_units=2, reserved_units=5)
        .when(ChangeActivity(HOST, "control", -1), at=0)
        .then(like(ActivityCounted))
        .then_load("a", 4, 0)
    )


def test_an_unknown_host_is_ignored() -> None:
    given(cell("a")).when(ChangeActivity(OTHER, "invite", 1), at=0).then_nothing()
