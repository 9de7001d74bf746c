"""A host that an existing-only cell granted a place and never served may leave it."""

import pytest

from domain.relay.activity import AcquireActivity
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease
from domain.relay.cell import Admission
from domain.relay.placement import Grant, HostPlaced
from domain.relay.turn import Load
from tests.domain.relay.fleet import (
    HOST,
    OTHER,
    PENDING,
    active,
    admitted,
    cell,
    ended,
    lasting,
    settled,
)
from tests.domain.scenario import Scenario, given, like


def granted_on_a_then_closed(admission: Admission = "existing-only") -> Scenario:
    return given(cell("a"), cell("b")).after(Assign(HOST), at=100).given(admitted("a", admission))


def test_it_stays_while_it_may_still_attach_then_leaves_and_does_not_bounce() -> None:
    (
        granted_on_a_then_closed()
        .when(Assign(HOST), at=10_100)
        .then()
        .then_answers(like(Grant, cell_id="a", epoch=1))
        .when(Assign(HOST), at=71_100)
        .then(
            like(
                HostPlaced,
                reason="stranded",
                cell_id="b",
                epoch=2,
                previous_cell_id="a",
                dropped_activity_ids=(PENDING,),
                last_activity_seen_at=10_100,
            )
        )
        .then_touched(ended(HOST, PENDING))
        .then_load("a", 0, 0)
        .then_load("b", 1, 1)
        .when(Assign(HOST), at=72_100)
        .then()
        .then_answers(like(Grant, cell_id="b", epoch=2))
    )


@pytest.mark.parametrize(
    ("age", "leaves"), [(59_999, False), (60_000, True), (899_999, True), (900_000, False)]
)
def test_the_window_is_from_one_to_fifteen_minutes(age: int, leaves: bool) -> None:
    decided = granted_on_a_then_closed().when(Assign(HOST), at=100 + age)
    decided.then_answers(like(Grant, cell_id="b" if leaves else "a", epoch=2 if leaves else 1))


@pytest.mark.parametrize("admission", ["migration-only", "general"])
def test_only_an_existing_only_cell_strands(admission: Admission) -> None:
    scenario = given(cell("a"), cell("b")).after(Assign(HOST), at=100)
    if admission != "general":
        scenario.given(admitted("a", admission))
    scenario.when(Assign(HOST), at=61_100).then().then_answers(like(Grant, cell_id="a"))


def test_a_cell_that_serves_the_host_keeps_it() -> None:
    (
        granted_on_a_then_closed()
        .given(active(HOST, since=100))
        .after(AcquireActivity(HOST, "control:live-1", "control", "a", 600_100), at=100)
        .when(Assign(HOST), at=61_100)
        .then()
        .then_answers(like(Grant, cell_id="a", epoch=1))
    )


@pytest.mark.parametrize(("until", "leaves"), [(61_100, True), (61_101, False)])
def test_a_lease_serves_until_just_before_it_ends(until: int, leaves: bool) -> None:
    splice = {"splice:1": Lease("splice", "a", 2)}
    (
        given(cell("a", admission="existing-only"), cell("b"))
        .given(*settled(HOST, "a", counts=Counts(0, 1), leases=splice, loads={"a": Load(2, 2)}))
        .given(active(HOST, since=100), lasting(HOST, "splice:1", until=until))
        .when(Assign(HOST), at=61_100)
        .then_answers(like(Grant, cell_id="b" if leaves else "a"))
    )


def test_what_it_leaves_behind_is_taken_from_the_cell_by_its_counters() -> None:
    """Counters and leases differ here: the cell gives back what was counted."""
    older = {"control-pending:1": Lease("control", "a", 1)}
    (
        given(cell("a", admission="existing-only"), cell("b"))
        .given(*settled(OTHER, "a"))
        .given(*settled(HOST, "a", counts=Counts(3), leases=older, loads={"a": Load(5, 2)}))
        .given(active(HOST, since=100))
        .when(Assign(HOST), at=100_000)
        .then(like(HostPlaced, reason="stranded"))
        .then_load("a", 2, 1)
        .then_leases(HOST, "control-pending:2")
    )
