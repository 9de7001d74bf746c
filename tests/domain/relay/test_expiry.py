"""What nobody renewed is taken back. What ends at this very moment has ended."""

import pytest

from domain.refusals import RelayCapacityExhausted
from domain.relay.activity import (
    AcquireActivity,
    ActivityExpired,
    ChangeActivity,
    CountsExpired,
)
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease, Shift
from domain.relay.expiry import ReleaseExpiredCounts, ReleaseExpiredLeases
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

END = 100 + LEASE


def assigned() -> Scenario:
    return given(cell("a")).after(Assign(HOST), at=100)


# leases


@pytest.mark.parametrize(("late", "over"), [(-1, False), (0, True), (1, True)])
def test_a_lease_is_over_from_its_expiry_on(late: int, over: bool) -> None:
    decided = assigned().when(ReleaseExpiredLeases(), at=END + late, found=[HOST])
    if not over:
        decided.then_nothing().then_answers(0)
        return
    (
        decided.then(
            ActivityExpired(
                at=END + late,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", -1, 0, 0, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(),
                activity_id=PENDING,
                lease=Lease("control", "a", 1),
                deadline_at=END,
            )
        )
        .then_answers(1)
        .then_touches(ended(HOST, PENDING), active(HOST, since=END + late, until=END + late))
    )


def test_only_what_is_over_ends() -> None:
    (
        assigned()
        .after(AcquireActivity(HOST, "s", "splice", "a", END + 1), at=100)
        .when(ReleaseExpiredLeases(), at=END, found=[HOST])
        .then(like(ActivityExpired, activity_id=PENDING, counts=Counts(splices=1)))
        .then_leases(HOST, "s")
        .then_load("a", 2, 2)
    )


def test_leases_end_in_the_order_of_their_expiry_then_by_host_and_id() -> None:
    leases = {key: Lease("invite", "a", 1) for key in ("z", "y", "x")}
    (
        given(cell("a"))
        .given(*settled(OTHER, "a", counts=Counts(0, 0, 1), leases={"x": leases["x"]}))
        .given(*settled(HOST, "a", counts=Counts(0, 0, 3), leases=leases, loads={"a": Load(4, 4)}))
        .given(lasting(OTHER, "x", until=70), lasting(HOST, "x", until=70))
        .given(lasting(HOST, "y", until=70), lasting(HOST, "z", until=60))
        .when(ReleaseExpiredLeases(), at=100, found=[OTHER, HOST])
        .then(
            like(ActivityExpired, user_id="ada", activity_id="z", deadline_at=60),
            like(ActivityExpired, user_id="ada", activity_id="x"),
            like(ActivityExpired, user_id="ada", activity_id="y"),
            like(ActivityExpired, user_id="bob", activity_id="x"),
        )
        .then_answers(4)
        .then_load("a", 0, 0)
    )


def test_the_hosts_own_lease_is_not_shortened_by_an_end() -> None:
    (
        assigned()
        .given(active(HOST, since=100, until=900_100))
        .when(ReleaseExpiredLeases(), at=END, found=[HOST])
        .then_touches(ended(HOST, PENDING), active(HOST, since=END, until=900_100))
    )


def test_a_restored_lease_without_a_deadline_gets_a_full_one() -> None:
    leases = {"i": Lease("invite", "a", 1)}
    (
        given(cell("a"), *settled(HOST, "a", counts=Counts(0, 0, 1), leases=leases))
        .when(ReleaseExpiredLeases(), at=10**12, found=[HOST])
        .then_nothing()
    )


def test_a_lowered_capacity_stops_the_sweep_but_what_ended_before_stays_ended() -> None:
    """The second cell holds more than its lowered capacity even without what is given back."""
    first = {"a1": Lease("invite", "a", 1)}
    second = {"b1": Lease("invite", "b", 1), "b2": Lease("invite", "b", 1)}
    (
        given(cell("a"), cell("b", capacity=1))
        .given(*settled(HOST, "a", counts=Counts(0, 0, 1), leases=first))
        .given(*settled(OTHER, "b", counts=Counts(0, 0, 2), leases=second))
        .given(*settled(OTHER._replace(user_id="x"), "b", loads={"a": Load(1, 1), "b": Load(3, 2)}))
        .given(active(HOST, since=0), lasting(HOST, "a1", until=50))
        .given(active(OTHER, since=0))
        .given(lasting(OTHER, "b1", until=60), lasting(OTHER, "b2", until=70))
        .when(ReleaseExpiredLeases(), at=LEASE, found=[HOST, OTHER])
        .then_refused(
            RelayCapacityExhausted,
            like(ActivityExpired, activity_id="a1"),
            active(HOST, since=LEASE, until=LEASE),
            ended(HOST, "a1"),
            cell_id="b",
            capacity_units=1,
            reserved_units=3,
        )
        .then_load("a", 0, 0)
        .then_load("b", 3, 2)
        .then_leases(HOST)
        .then_leases(OTHER, "b1", "b2")
    )


def test_what_is_given_back_may_bring_the_cell_down_to_its_capacity() -> None:
    leases = {"s": Lease("splice", "a", 2)}
    (
        given(cell("a", capacity=1))
        .given(*settled(HOST, "a", counts=Counts(0, 1), leases=leases, loads={"a": Load(3, 2)}))
        .given(lasting(HOST, "s", until=50))
        .when(ReleaseExpiredLeases(), at=50, found=[HOST])
        .then(like(ActivityExpired))
        .then_load("a", 1, 0)
    )


# counters


def counted() -> Scenario:
    """Counted with one of each kind: seven units, of which one is leased."""
    scenario = assigned()
    for kind in ("splice", "invite", "install", "confirmation", "migration"):
        scenario.after(ChangeActivity(HOST, kind, 1), at=100)
    return scenario


def test_counters_are_zeroed_with_the_hosts_own_lease() -> None:
    (
        counted()
        .after(ReleaseExpiredLeases(), at=END, found=[HOST])
        .when(ReleaseExpiredCounts(), at=END, found=[HOST])
        .then(
            CountsExpired(
                at=END,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", -6, 0, 0, 0),),
                cell_id="a",
                epoch=1,
                counts=Counts(),
                expired=Counts(0, 1, 1, 1, 1, 1),
                deadline_at=END,
            )
        )
        .then_answers(1)
        .then_touches()
        .when(ReleaseExpiredCounts(), at=END, found=[HOST])
        .then_nothing()
        .then_answers(0)
    )


@pytest.mark.parametrize(("late", "over"), [(-1, False), (0, True)])
def test_a_hosts_own_lease_is_over_from_its_expiry_on(late: int, over: bool) -> None:
    decided = counted().when(ReleaseExpiredCounts(), at=END + late, found=[HOST])
    decided.then_answers(int(over))
    if over:
        decided.then_leases(HOST, PENDING).then_load("a", 0, 1)


def test_a_sweep_of_counters_is_all_or_nothing() -> None:
    (
        given(cell("a"), cell("b", capacity=1))
        .given(*settled(HOST, "a", counts=Counts(1), loads={"a": Load(1)}))
        .given(*settled(OTHER, "b", counts=Counts(1), loads={"b": Load(3)}))
        .given(active(HOST, since=0), active(OTHER, since=0))
        .when(ReleaseExpiredCounts(), at=LEASE, found=[OTHER, HOST])
        .then_refused(RelayCapacityExhausted, cell_id="b", capacity_units=1, reserved_units=3)
        .then_holds(HOST, counts=Counts(1))
        .then_load("a", 1, 0)
    )


def test_hosts_are_zeroed_in_the_order_of_their_ids() -> None:
    (
        given(cell("a"), *settled(OTHER, "a", counts=Counts(1)), active(OTHER, since=0))
        .given(*settled(HOST, "a", counts=Counts(1), loads={"a": Load(2)}), active(HOST, since=0))
        .when(ReleaseExpiredCounts(), at=LEASE, found=[OTHER, HOST])
        .then(like(CountsExpired, user_id="ada"), like(CountsExpired, user_id="bob"))
        .then_answers(2)
        .then_load("a", 0, 0)
    )


def test_a_restored_host_without_a_deadline_keeps_its_counters() -> None:
    (
        given(cell("a"), *settled(HOST, "a", counts=Counts(1)))
        .when(ReleaseExpiredCounts(), at=10**12, found=[HOST])
        .then_nothing()
    )
