"""A limited cell expects no more connections than its hard cap less the re-bind reserve."""

import pytest

from domain.limits import CONNECTION_HARD_CAPS
from domain.refusals import RelayCapacityExhausted, RelayConnectionHeadroomExhausted
from domain.relay.activity import ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Opened
from domain.relay.cell import Admission
from domain.relay.control import ActivateControl
from domain.relay.placement import ControlRegranted, Grant, HostPlaced
from domain.relay.turn import Load
from tests.domain.relay.fleet import (
    HOST,
    LEASE,
    NONE_COUNTED,
    OTHER,
    PENDING,
    TTL,
    active,
    admitted,
    cell,
    limited,
    report,
    settled,
)
from tests.domain.scenario import LIVE_CELLS, Scenario, given, like


@pytest.mark.parametrize(
    ("hard_cap", "bound", "pause"),
    [(600, 50, 450), (1_000, 60, 840), (3_000, 2_899, 1), (600, 0, 500), (1_000, 50, 850)],
)
def test_placement_pauses_at_the_hard_cap_less_reserve_and_bound(
    hard_cap: int, bound: int, pause: int
) -> None:
    assert hard_cap in CONNECTION_HARD_CAPS
    (
        given(limited("a", hard_cap=hard_cap, bound=bound), report("a", at=100, enforced=pause))
        .when(Assign(HOST), at=100)
        .then_refused(RelayCapacityExhausted)
        .given(report("a", at=100, enforced=pause - 1))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, connection=Opened(1, 100 + LEASE)))
        .when(Assign(OTHER), at=100)
        .then_refused(RelayCapacityExhausted)
        .then_load("a", 1, 1, connections=1)
    )


@pytest.mark.parametrize("outstanding", [0, 2, 3, 4])
def test_every_outstanding_connection_is_charged(outstanding: int) -> None:
    decided = (
        given(limited("a"), report("a", at=100, enforced=447))
        .given(*settled(OTHER, "a", loads={"a": Load(0, 0, outstanding)}))
        .when(Assign(HOST), at=100)
    )
    if outstanding < 3:
        decided.then(like(HostPlaced, cell_id="a"))
    else:
        decided.then_refused(RelayCapacityExhausted)


@pytest.mark.parametrize(("age", "open_"), [(TTL - 1, True), (TTL, False)])
def test_a_snapshot_as_old_as_the_ttl_closes_the_cell(age: int, open_: bool) -> None:
    decided = (
        given(limited("a"), report("a", at=100 + age, enforced=0, snapshot_at=100))
        .when(Assign(HOST), at=100 + age)
    )  # fmt: skip
    if open_:
        decided.then(like(HostPlaced, cell_id="a"))
    else:
        decided.then_refused(RelayCapacityExhausted)


def test_stale_telemetry_does_not_matter_to_cells_without_a_limit() -> None:
    (
        given(limited("a"), cell("b"), policy=LIVE_CELLS)
        .given(report("a", at=50_000, enforced=0, snapshot_at=0), report("b", at=50_000))
        .when(Assign(HOST), at=50_000)
        .then(like(HostPlaced, cell_id="b", candidates=(("b", 0, 0, 10),), connection=None))
    )


def test_without_live_cells_a_limited_cell_still_must_be_heard() -> None:
    given(limited("a")).when(Assign(HOST), at=0).then_refused(RelayCapacityExhausted)


# a host that already has its place


def quiet_on_full(admission: Admission = "general", *, counts: Counts = NONE_COUNTED) -> Scenario:
    """A host at epoch 7 on a cell without headroom, with one expected connection there."""
    held = settled(
        HOST,
        "a",
        epoch=7,
        counts=counts,
        connection=Opened(1, 90),
        loads={"a": Load(counts.units, 0, 1)},
    )
    return (
        given(limited("a"), *held, active(HOST, since=100), report("a", at=200, enforced=449))
        .given(limited("b"), report("b", at=200, enforced=0))
        .given(admitted("a", admission))
    )


def test_without_activity_it_moves_off_a_full_general_cell() -> None:
    (
        quiet_on_full()
        .when(Assign(HOST), at=200)
        .then(
            like(
                HostPlaced,
                reason="headroom",
                cell_id="b",
                epoch=8,
                counts=Counts(1),
                released_connections=(1,),
                connection=Opened(2, 200 + LEASE),
            )
        )
        .then_load("a", 0, 0, connections=0)
        .then_load("b", 1, 1, connections=1)
        .then_connections(HOST, "reserved")
    )


@pytest.mark.parametrize("admission", ["existing-only", "migration-only"])
def test_without_activity_it_stays_on_a_full_closed_cell(admission: Admission) -> None:
    """Stranded hosts aside: this one was active less than a minute ago."""
    (
        quiet_on_full(admission)
        .when(Assign(HOST), at=200)
        .then_refused(RelayConnectionHeadroomExhausted, cell_id="a")
        .then_holds(HOST, cell_id="a", epoch=7, leases={})
    )


def test_with_other_activity_it_stays_and_is_refused() -> None:
    (
        quiet_on_full(counts=Counts(invites=1))
        .when(Assign(HOST), at=200)
        .then_refused(RelayConnectionHeadroomExhausted, cell_id="a")
        .then_holds(HOST, cell_id="a", epoch=7, counts=Counts(invites=1), leases={})
    )


def test_with_a_control_it_needs_no_headroom() -> None:
    (
        given(limited("a"), report("a", at=100, enforced=449))
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
        .given(report("a", at=200, enforced=450, watermark=1))
        .when(Assign(HOST), at=200)
        .then()
        .then_answers(like(Grant, cell_id="a", epoch=1))
    )


@pytest.mark.parametrize(
    "told",
    [
        report("a", at=50_000),
        report("a", at=50_000, enforced=0, snapshot_at=50_000 - TTL),
        report("a", at=50_000, enforced=0, snapshot_incarnation="old"),
        report("a", at=50_000, enforced=450),
    ],
    ids=["no snapshot", "snapshot as old as the ttl", "another incarnation's", "at the boundary"],
)
def test_an_active_host_is_refused_unless_headroom_is_proven(told: object) -> None:
    assert isinstance(told, type(report("a", at=0)))
    (
        given(limited("a"), told, policy=LIVE_CELLS)
        .given(*settled(HOST, "a", counts=Counts(splices=1), loads={"a": Load(2, 2)}))
        .given(active(HOST, since=0))
        .when(Assign(HOST), at=50_000)
        .then_refused(RelayConnectionHeadroomExhausted, cell_id="a")
    )


def test_an_active_host_on_a_cell_without_a_limit_is_granted() -> None:
    (
        given(cell("a"), report("a", at=50_000), policy=LIVE_CELLS)
        .given(*settled(HOST, "a", counts=Counts(splices=1), loads={"a": Load(2, 2)}))
        .given(active(HOST, since=0))
        .when(Assign(HOST), at=50_000)
        .then(like(ControlRegranted, cell_id="a", counts=Counts(1, 1), connection=None))
    )


def test_a_released_pending_control_leaves_its_connection_outstanding() -> None:
    (
        given(limited("a"), report("a", at=100, enforced=449))
        .after(Assign(HOST), at=100)
        .after(ReleaseActivity(HOST, PENDING), at=100)
        .when(Assign(OTHER), at=100)
        .then_refused(RelayCapacityExhausted)
        .then_load("a", 0, 0, connections=1)
    )
