"""An operator sets all of one cell: URL, region, capacity, limit and admission."""

import pytest

from domain.refusals import CellCapacityBelowReserved, CellUrlTaken, RelayCapacityExhausted
from domain.relay.assign import Assign
from domain.relay.assignment import Counts
from domain.relay.cell import (
    AdmissionSelectorOpened,
    CellAdmissionChanged,
    CellReconfigured,
    CellRegistered,
)
from domain.relay.inventory import CellSettings, ConfigureCell
from domain.relay.placement import HostPlaced
from domain.relay.runtime import TouchRuntime
from domain.relay.turn import Load
from tests.domain.relay.fleet import HOST, beat, cell, connections, limited, report, settled, url
from tests.domain.scenario import given, like

A = CellSettings("a", url("a"), 10)


def test_a_cell_may_join_this_way() -> None:
    (
        given()
        .when(ConfigureCell(A, "migration-only"), at=100)
        .then(
            like(CellRegistered, cell_id="a", admission="migration-only"),
            AdmissionSelectorOpened(at=100),
        )
    )


def test_all_of_a_known_cell_is_set() -> None:
    moved = CellSettings("a", "https://new.test", 20, "asia-east2", True, 600, 50)
    (
        given(cell("a"))
        .when(ConfigureCell(moved, "existing-only"), at=100)
        .then(
            CellReconfigured(
                at=100,
                cell_id="a",
                cell_url="https://new.test",
                region="asia-east2",
                capacity_units=20,
                hard_cap_connections=600,
                unobserved_bound_connections=50,
            ),
            CellAdmissionChanged(
                at=100, cell_id="a", before="general", admission="existing-only", reason="operator"
            ),
            AdmissionSelectorOpened(at=100),
        )
        .when(ConfigureCell(moved, "existing-only"), at=200)
        .then_nothing()
    )


@pytest.mark.parametrize(("capacity", "fits"), [(3, True), (2, False)])
def test_the_capacity_may_not_fall_below_what_is_held(capacity: int, fits: bool) -> None:
    decided = given(cell("a"), *settled(HOST, "a", counts=Counts(3), loads={"a": Load(3, 0)})).when(
        ConfigureCell(CellSettings("a", url("a"), capacity), "general"), at=100
    )
    if fits:
        decided.then(like(CellReconfigured, capacity_units=3), like(AdmissionSelectorOpened))
    else:
        decided.then_refused(
            CellCapacityBelowReserved, cell_id="a", capacity_units=2, reserved_units=3
        )


def test_another_cells_url_is_refused() -> None:
    (
        given(cell("a"), cell("b"))
        .when(ConfigureCell(CellSettings("b", url("a"), 10), "general"), at=100)
        .then_refused(CellUrlTaken, cell_id="b", taken_by="a")
        .when(ConfigureCell(CellSettings("c", url("a"), 10), "general"), at=100)
        .then_refused(CellUrlTaken, cell_id="c", taken_by="a")
    )


def test_a_new_limit_closes_placement_until_the_cell_reports_under_it() -> None:
    known = report("a", at=100, enforced=449)
    raised = CellSettings("a", url("a"), 10_000, "us-central1", True, 1_000, 50)
    (
        given(limited("a"), known)
        .when(ConfigureCell(raised, "general"), at=100)
        .then_touches(TouchRuntime("a", report("a", at=100).runtime))
        .when(Assign(HOST), at=100)
        .then_refused(RelayCapacityExhausted)
        .after(
            beat(
                "a",
                incarnation="two",
                started_at=60,
                told=connections(849, hard_cap=1_000, watermark=0),
            ),
            at=100,
        )
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, cell_id="a"))
    )
