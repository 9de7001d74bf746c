"""A connection that did not come in time is owed as debt: the host may still arrive."""

import pytest

from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease, Opened, Shift
from domain.relay.cell import CellStarted
from domain.relay.connection import ConnectionsLapsed, ConnectionsReleased, LapseConnections
from domain.relay.control import ActivateControl
from domain.relay.placement import ControlRegranted, HostPlaced
from tests.domain.relay.expected import RETENTION, TIMEOUT, expected_on_a, observed, owed_on_a
from tests.domain.relay.fleet import (
    HOST,
    OTHER,
    PENDING,
    beat,
    connections,
    limited,
    report,
)
from tests.domain.scenario import Scenario, given, like


@pytest.mark.parametrize(("late", "lapses"), [(-1, False), (0, True), (1, True)])
def test_a_reservation_becomes_debt_at_its_timeout(late: int, lapses: bool) -> None:
    decided = expected_on_a().when(LapseConnections(), at=TIMEOUT + late, found=[HOST])
    if lapses:
        decided.then(
            ConnectionsLapsed(
                at=TIMEOUT + late, user_id="ada", relay_host_id="desktop", connections=(1,)
            )
        )
        decided.then_answers(1).then_load("a", 1, 1, connections=1)
        decided.then_connections(HOST, "late-arrival-debt")
    else:
        decided.then().then_connections(HOST, "reserved")


def test_a_claimed_connection_does_not_lapse() -> None:
    (
        expected_on_a()
        .after(ActivateControl(HOST, "a", 1, 1), at=200)
        .when(LapseConnections(), at=TIMEOUT, found=[HOST])
        .then()
        .then_connections(HOST, "claimed")
    )


@pytest.mark.parametrize(("age", "kept"), [(RETENTION - 1, True), (RETENTION, False)])
def test_debt_is_retired_ten_minutes_after_its_timeout(age: int, kept: bool) -> None:
    decided = owed_on_a().when(LapseConnections(), at=TIMEOUT + age, found=[HOST])
    if kept:
        decided.then().then_connections(HOST, "late-arrival-debt")
    else:
        decided.then(like(ConnectionsReleased, connections=(1,), reason="retired_debt"))
        decided.then_connections(HOST).then_load("a", 0, 0, connections=0)


def test_what_nobody_swept_in_time_lapses_and_retires_at_once() -> None:
    (
        expected_on_a()
        .when(LapseConnections(), at=TIMEOUT + RETENTION, found=[HOST])
        .then(
            like(ConnectionsLapsed, connections=(1,)),
            like(ConnectionsReleased, connections=(1,), reason="retired_debt"),
        )
    )


def owed_twice(second_epoch: int = 1) -> Scenario:
    """Two debts at one cell, as only a history written by hand can have them."""
    first = HostPlaced(
        at=100,
        user_id="ada",
        relay_host_id="desktop",
        cell_id="a",
        epoch=1,
        counts=Counts(1),
        reason="new",
        previous_cell_id=None,
        region="us-central1",
        candidates=(),
        more_candidates=0,
        activity_id=PENDING,
        lease=Lease("control", "a", 1),
        connection=Opened(1, 150),
    )
    second = ControlRegranted(
        at=101,
        user_id="ada",
        relay_host_id="desktop",
        shifts=(Shift("a", 1, 2, 1, 2),),
        cell_id="a",
        epoch=second_epoch,
        counts=Counts(2),
        activity_id=PENDING,
        lease=Lease("control", "a", 1),
        connection=Opened(2, 150),
    )
    return (
        given(limited("a"), report("a", at=0, enforced=0), first, second)
        .after(LapseConnections(), at=150, found=[HOST])
    )  # fmt: skip


def test_debt_owed_twice_collapses_to_the_oldest() -> None:
    (
        observed(owed_twice(), at=200, watermark=10)
        .then(
            like(CellStarted, cell_id="a"),
            like(ConnectionsReleased, connections=(2,), reason="duplicate_debt"),
        )
        .then_connections(HOST, "late-arrival-debt")
        .then_load("a", 2, 1, connections=1)
    )


def test_debts_of_two_epochs_are_both_owed() -> None:
    decided = observed(owed_twice(second_epoch=2), at=200, watermark=10)
    decided.then(like(CellStarted, cell_id="a"))
    decided.then_connections(HOST, "late-arrival-debt", "late-arrival-debt")


def test_debt_that_a_control_claimed_is_no_duplicate() -> None:
    decided = observed(
        owed_twice().after(ActivateControl(HOST, "a", 1, 1), at=160), at=200, watermark=10
    )
    decided.then_connections(HOST, "claimed", "late-arrival-debt")


def test_a_heartbeat_leaves_what_is_expected_elsewhere() -> None:
    (
        given(limited("a"), limited("b"), report("a", at=0, enforced=0))
        .given(report("b", at=0, enforced=400))
        .after(Assign(HOST), at=100)
        .after(LapseConnections(), at=TIMEOUT, found=[HOST])
        .when(beat("b", told=connections(0, watermark=9)), at=TIMEOUT, found=[HOST])
        .then_connections(HOST, "late-arrival-debt")
    )


def test_hosts_are_settled_one_by_one() -> None:
    (
        expected_on_a()
        .after(Assign(OTHER), at=100)
        .when(LapseConnections(), at=TIMEOUT, found=[HOST, OTHER])
        .then(
            like(ConnectionsLapsed, user_id=HOST.user_id),
            like(ConnectionsLapsed, user_id=OTHER.user_id),
        )
        .then_answers(2)
    )


def test_nothing_found_is_nothing_done() -> None:
    expected_on_a().when(LapseConnections(), at=TIMEOUT).then_nothing().then_answers(0)
