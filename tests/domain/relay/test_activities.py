"""What a host does on its cell weighs units of it, from its beginning to its end."""

import pytest

from domain.limits import ACTIVITY_ID_LENGTH_MAX, LEASES_PER_HOST_MAX, SAFE_INTEGER_MAX
from domain.refusals import (
    ActivityCellNotAuthoritative,
    AssignmentNotFound,
    HostActivitiesExhausted,
    InvalidActivityExpiry,
    InvalidActivityId,
    RelayCapacityExhausted,
)
from domain.relay.activity import AcquireActivity, ActivityAcquired, ActivityReleased
from domain.relay.activity import ReleaseActivity as Release
from domain.relay.assign import Assign
from domain.relay.assignment import KINDS, REQUEST_UNITS, Counts, Kind, Lease, Shift
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


def assigned(*, capacity: int = 10) -> Scenario:
    return given(cell("a", capacity=capacity), cell("b", capacity=1)).after(Assign(HOST), at=100)


def test_it_begins_with_its_units_and_a_full_lease() -> None:
    (
        assigned()
        .when(AcquireActivity(HOST, "s", "splice", "a"), at=200)
        .then(
            ActivityAcquired(
                at=200,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", 2, 3, 3, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(controls=1, splices=1),
                activity_id="s",
                lease=Lease("splice", "a", 2),
            )
        )
        .then_answers(None)
        .then_touches(active(HOST, since=200), lasting(HOST, "s", until=200 + LEASE, told=200))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_counted_and_weighed(kind: Kind) -> None:
    weight = REQUEST_UNITS[kind]
    assert weight == (2 if kind == "splice" else 1)
    (
        given(cell("a"), *settled(HOST, "a"))
        .when(AcquireActivity(HOST, "it", kind, "a"), at=200)
        .then(like(ActivityAcquired, counts=Counts().plus(kind, 1)))
        .then_load("a", weight, weight)
        .when(Release(HOST, "it"), at=300)
        .then(like(ActivityReleased, counts=Counts()))
        .then_load("a", 0, 0)
    )


def test_the_same_again_only_renews() -> None:
    (
        assigned()
        .after(AcquireActivity(HOST, "s", "splice", "a"), at=200)
        .when(AcquireActivity(HOST, "s", "splice", "a"), at=300)
        .then()
        .then_touches(active(HOST, since=300), lasting(HOST, "s", until=300 + LEASE, told=300))
    )


def test_a_renewal_may_shorten_the_lease_but_not_the_hosts_own() -> None:
    (
        assigned()
        .after(AcquireActivity(HOST, "s", "splice", "a", 500_000), at=200)
        .when(AcquireActivity(HOST, "s", "splice", "a", 301), at=300)
        .then()
        .then_touches(
            active(HOST, since=300, until=500_000), lasting(HOST, "s", until=301, told=300)
        )
    )


def test_another_kind_converts_it() -> None:
    (
        assigned()
        .after(AcquireActivity(HOST, "it", "splice", "a"), at=200)
        .when(AcquireActivity(HOST, "it", "invite", "a"), at=300)
        .then(
            like(
                ActivityAcquired,
                converted_from=Lease("splice", "a", 2),
                lease=Lease("invite", "a", 1),
                counts=Counts(controls=1, invites=1),
                shifts=(Shift("a", -1, 2, 2, 0),),
            )
        )
        .then_leases(HOST, PENDING, "it")
    )


def test_another_cell_moves_it_without_counting_twice() -> None:
    elsewhere = {"s": Lease("splice", "b", 2)}
    (
        given(cell("a"), cell("b"))
        .given(*settled(HOST, "a", counts=Counts(0, 1), leases=elsewhere, loads={"b": Load(2, 2)}))
        .when(AcquireActivity(HOST, "s", "splice", "a"), at=300)
        .then(like(ActivityAcquired, shifts=(Shift("b", -2, 0, 0, 0), Shift("a", 2, 2, 2, 0))))
        .when(Release(HOST, "s"), at=300)
        .then_answers(True)
        .then_load("a", 0, 0)
        .when(Release(HOST, "s"), at=300)
        .then_answers(False)
        .then_nothing()
    )


def test_a_conversion_is_refused_while_the_cell_it_leaves_is_over_capacity() -> None:
    elsewhere = {"s": Lease("splice", "b", 2)}
    (
        given(cell("a"), cell("b", capacity=1))
        .given(*settled(HOST, "a", counts=Counts(0, 1), leases=elsewhere, loads={"b": Load(4, 2)}))
        .when(AcquireActivity(HOST, "s", "splice", "a"), at=300)
        .then_refused(RelayCapacityExhausted, cell_id="b", capacity_units=1, reserved_units=4)
    )


def test_without_room_nothing_begins() -> None:
    (
        assigned(capacity=2)
        .when(AcquireActivity(HOST, "s", "splice", "a"), at=200)
        .then_refused(RelayCapacityExhausted, cell_id="a", capacity_units=2, reserved_units=1)
        .then_load("a", 1, 1)
        .when(AcquireActivity(HOST, "i", "invite", "a"), at=200)
        .then(like(ActivityAcquired))
        .then_load("a", 2, 2)
    )


def test_only_the_hosts_own_cell_may_begin_something() -> None:
    (
        assigned()
        .when(AcquireActivity(HOST, "s", "splice", "b"), at=200)
        .then_refused(ActivityCellNotAuthoritative, cell_id="b", assigned_cell_id="a")
        .when(AcquireActivity(OTHER, "s", "splice", "a"), at=200)
        .then_refused(AssignmentNotFound)
    )


@pytest.mark.parametrize("activity_id", ["", "x" * (ACTIVITY_ID_LENGTH_MAX + 1), "🛰" * 129])
def test_an_id_has_1_to_256_code_units(activity_id: str) -> None:
    (
        given()
        .when(AcquireActivity(HOST, activity_id, "invite", "a"), at=0)
        .then_refused(InvalidActivityId, length_max=256)
        .when(Release(HOST, activity_id), at=0)
        .then_refused(InvalidActivityId)
    )


@pytest.mark.parametrize("activity_id", ["x", "x" * 256, "🛰" * 128, "é" * 256])
def test_ids_of_the_longest_length_are_fine(activity_id: str) -> None:
    assigned().when(AcquireActivity(HOST, activity_id, "invite", "a"), at=200).then_accepted()


@pytest.mark.parametrize(
    "expires_at", [200, 199, 0, -1, 200.5, float("nan"), float("inf"), SAFE_INTEGER_MAX + 1]
)
def test_an_expiry_is_a_whole_time_ahead(expires_at: int | float) -> None:
    (
        assigned()
        .when(AcquireActivity(HOST, "i", "invite", "a", expires_at), at=200)
        .then_refused(InvalidActivityExpiry, now=200, latest=SAFE_INTEGER_MAX)
    )


@pytest.mark.parametrize("expires_at", [201, 201.0, SAFE_INTEGER_MAX])
def test_any_whole_time_ahead_will_do(expires_at: int | float) -> None:
    (
        assigned()
        .when(AcquireActivity(HOST, "i", "invite", "a", expires_at), at=200)
        .then_touched(lasting(HOST, "i", until=int(expires_at), told=200))
    )


def test_the_expiry_is_judged_before_the_room_and_after_the_authority() -> None:
    (
        assigned(capacity=1)
        .when(AcquireActivity(HOST, "i", "invite", "b", 0), at=200)
        .then_refused(ActivityCellNotAuthoritative)
        .when(AcquireActivity(HOST, "i", "invite", "a", 0), at=200)
        .then_refused(InvalidActivityExpiry)
    )


# the end


def test_it_ends_once() -> None:
    (
        assigned()
        .after(AcquireActivity(HOST, "s", "splice", "a"), at=200)
        .when(Release(HOST, "s"), at=300)
        .then(
            ActivityReleased(
                at=300,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", -2, 1, 1, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(controls=1),
                activity_id="s",
                lease=Lease("splice", "a", 2),
            )
        )
        .then_answers(True)
        .then_touches(ended(HOST, "s"), active(HOST, since=300, until=200 + LEASE))
        .when(Release(HOST, "s"), at=300)
        .then_nothing()
        .then_answers(False)
    )


def test_an_unknown_host_has_nothing_to_end() -> None:
    given(cell("a")).when(Release(HOST, "s"), at=0).then_nothing().then_answers(False)


def test_a_cell_never_holds_less_than_nothing() -> None:
    leases = {"s": Lease("splice", "a", 2)}
    (
        given(cell("a"), *settled(HOST, "a", leases=leases, loads={"a": Load(1, 2)}))
        .when(Release(HOST, "s"), at=0)
        .then(like(ActivityReleased, shifts=(Shift("a", -2, 0, 0, 0),), counts=Counts()))
    )


def test_a_lowered_capacity_does_not_hinder_an_end() -> None:
    leases = {"i": Lease("invite", "a", 1)}
    (
        given(cell("a", capacity=1))
        .given(*settled(HOST, "a", counts=Counts(9), leases=leases, loads={"a": Load(10, 1)}))
        .when(Release(HOST, "i"), at=0)
        .then(like(ActivityReleased))
        .then_load("a", 9, 0)
    )


def test_a_host_has_only_so_many_at_once() -> None:
    leases = {f"i{n}": Lease("invite", "a", 1) for n in range(LEASES_PER_HOST_MAX - 1)}
    (
        given(cell("a", capacity=5_000), *settled(HOST, "a", leases=leases))
        .when(AcquireActivity(HOST, "last", "invite", "a"), at=0)
        .then(like(ActivityAcquired))
        .after(AcquireActivity(HOST, "last", "invite", "a"), at=0)
        .when(AcquireActivity(HOST, "one more", "invite", "a"), at=0)
        .then_refused(HostActivitiesExhausted, leases_max=LEASES_PER_HOST_MAX)
        .when(AcquireActivity(HOST, "last", "splice", "a"), at=0)
        .then(like(ActivityAcquired))
    )
