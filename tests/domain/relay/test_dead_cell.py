"""With live cells required, a host leaves a cell that is not heard; a limited cell holds on."""

import pytest

from domain.refusals import RelayCapacityExhausted
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease
from domain.relay.cell import Admission
from domain.relay.control import ActivateControl
from domain.relay.placement import Grant, HostPlaced
from domain.relay.turn import Load
from tests.domain.relay.fleet import (
    HOST,
    TTL,
    active,
    admitted,
    cell,
    ended,
    lasting,
    limited,
    report,
    settled,
)
from tests.domain.scenario import LIVE_CELLS, given, like


def test_an_unlimited_cell_that_is_not_ready_is_simply_left() -> None:
    (
        given(cell("a"), cell("b"), report("a", at=100), policy=LIVE_CELLS)
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
        .given(report("a", at=1_000, ready=False), report("b", at=1_000))
        .when(Assign(HOST), at=1_100)
        .then(
            like(
                HostPlaced,
                reason="dead_cell",
                cell_id="b",
                epoch=2,
                counts=Counts(1),
                dropped_activity_ids=("control:a:1",),
                last_heartbeat_seen_at=1_000,
                last_activity_seen_at=100,
            )
        )
        .then_touched(ended(HOST, "control:a:1"))
        .then_leases(HOST, "control-pending:2")
        .then_load("a", 0, 0)
        .then_load("b", 1, 1)
    )


@pytest.mark.parametrize(("age", "cell_id"), [(TTL - 1, "a"), (TTL, "b")])
def test_a_cell_is_dead_when_its_heartbeat_is_as_old_as_the_ttl(age: int, cell_id: str) -> None:
    (
        given(cell("a"), cell("b"), report("a", at=100), policy=LIVE_CELLS)
        .after(Assign(HOST), at=100)
        .given(report("b", at=100 + age))
        .when(Assign(HOST), at=100 + age)
        .then_answers(like(Grant, cell_id=cell_id))
    )


def test_a_limited_cell_keeps_its_host_until_it_is_fenced() -> None:
    (
        given(limited("a"), cell("b"), report("a", at=100, enforced=0), policy=LIVE_CELLS)
        .after(Assign(HOST), at=100)
        .given(report("b", at=100 + TTL))
        .when(Assign(HOST), at=100 + TTL)
        .then_refused(RelayCapacityExhausted, cell_id="a")
        .then_holds(HOST, cell_id="a", epoch=1)
    )


def test_a_silent_cell_whose_host_is_dormant_does_not_matter() -> None:
    (
        given(limited("a"), cell("b"), *settled(HOST, "a"), policy=LIVE_CELLS)
        .given(active(HOST, since=0), report("b", at=86_400_000))
        .when(Assign(HOST), at=86_400_000)
        .then(like(HostPlaced, reason="dormant", cell_id="b"))
    )


@pytest.mark.parametrize("admission", ["existing-only", "migration-only"])
def test_admission_does_not_matter_to_a_dead_cell(admission: Admission) -> None:
    (
        given(cell("a"), cell("b"), report("a", at=100), policy=LIVE_CELLS)
        .after(Assign(HOST), at=100)
        .given(admitted("a", admission), report("b", at=50_000))
        .when(Assign(HOST), at=50_000)
        .then(like(HostPlaced, reason="dead_cell", cell_id="b"))
    )


def test_leases_on_other_cells_are_dropped_from_those_cells() -> None:
    elsewhere = {"splice:1": Lease("splice", "c", 2)}
    (
        given(cell("a"), cell("b"), cell("c"), report("b", at=60_000), policy=LIVE_CELLS)
        .given(*settled(HOST, "a", counts=Counts(0, 1), leases=elsewhere))
        .given(*settled(HOST._replace(user_id="x"), "c", loads={"a": Load(2), "c": Load(0, 2)}))
        .given(active(HOST, since=0), lasting(HOST, "splice:1", until=90_000))
        .when(Assign(HOST), at=60_000)
        .then(like(HostPlaced, cell_id="b", dropped_activity_ids=("splice:1",)))
        .then_load("a", 0, 0)
        .then_load("c", 0, 0)
    )


def test_with_no_live_cell_left_it_is_refused() -> None:
    (
        given(cell("a"), cell("b"), report("a", at=100), policy=LIVE_CELLS)
        .after(Assign(HOST), at=100)
        .when(Assign(HOST), at=100 + TTL)
        .then_refused(RelayCapacityExhausted, region="us-central1")
        .then_holds(HOST, cell_id="a", epoch=1)
    )
