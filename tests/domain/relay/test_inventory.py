"""At start the inventory is brought up to its configuration; what operators decided stays."""

from typing import Any

from domain.refusals import CellUrlTaken
from domain.relay.cell import (
    AdmissionSelectorOpened,
    CellAdmissionChanged,
    CellReconfigured,
    CellRegistered,
)
from domain.relay.inventory import CellSettings, ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.runtime import CellRuntime, TouchRuntime
from tests.domain.relay.fleet import cell, limited, report, url
from tests.domain.scenario import given, like


def settings(cell_id: str, capacity: int = 10, **more: Any) -> CellSettings:
    return CellSettings(cell_id, url(cell_id), capacity, **more)


def test_unknown_cells_are_registered_in_order_and_the_selector_opens() -> None:
    (
        given()
        .when(ReconcileCells((settings("b"), settings("a", region="asia-east2"))), at=100)
        .then(
            CellRegistered(
                at=100,
                cell_id="a",
                cell_url=url("a"),
                region="asia-east2",
                capacity_units=10,
                hard_cap_connections=None,
                unobserved_bound_connections=None,
                admission="general",
            ),
            like(CellRegistered, cell_id="b"),
            AdmissionSelectorOpened(at=100),
        )
        .then_answers(None)
        .then_touches()
    )


def test_the_same_again_changes_nothing() -> None:
    command = ReconcileCells((settings("a"), settings("b")))
    given().after(command, at=100).when(command, at=200).then_nothing()


def test_an_empty_inventory_opens_the_selector_too() -> None:
    given().when(ReconcileCells(()), at=100).then(AdmissionSelectorOpened(at=100))


def test_a_candidate_starts_closed_and_stays_as_operators_left_it() -> None:
    candidate = ReconcileCells((settings("a", initially_enabled=False),))
    (
        given()
        .when(candidate, at=100)
        .then(like(CellRegistered, admission="existing-only"), like(AdmissionSelectorOpened))
        .after(SetCellAdmission("a", "general"), at=200)
        .when(candidate, at=300)
        .then_nothing()
    )


def test_an_operators_url_and_admission_survive_a_new_capacity() -> None:
    tagged = CellSettings("a", "https://tagged.test", 10)
    (
        given()
        .after(ConfigureCell(tagged, "existing-only"), at=100)
        .when(ReconcileCells((settings("a", capacity=20),)), at=200)
        .then(
            CellReconfigured(
                at=200,
                cell_id="a",
                cell_url="https://tagged.test",
                region="us-central1",
                capacity_units=20,
                hard_cap_connections=None,
                unobserved_bound_connections=None,
            )
        )
    )


def test_a_missing_cell_is_closed_unless_it_is_the_startup() -> None:
    (
        given()
        .after(ReconcileCells((settings("a"), settings("b"))), at=100)
        .when(ReconcileCells((settings("a"),), disable_missing=False), at=200)
        .then_nothing()
        .when(ReconcileCells((settings("a"),)), at=300)
        .then(
            CellAdmissionChanged(
                at=300,
                cell_id="b",
                before="general",
                admission="existing-only",
                reason="missing_from_inventory",
            )
        )
        .when(ReconcileCells((settings("a"),)), at=400)
        .then_nothing()
        .when(ReconcileCells((settings("a"), settings("b"))), at=500)
        .then_nothing()
    )


def test_a_cell_that_is_only_for_migrations_is_closed_when_it_is_missing() -> None:
    (
        given(cell("a", admission="migration-only"))
        .when(ReconcileCells(()), at=100)
        .then(like(CellAdmissionChanged, before="migration-only"), like(AdmissionSelectorOpened))
    )


def test_a_capacity_may_be_lowered_below_what_is_held() -> None:
    (
        given(cell("a", capacity=10))
        .when(ReconcileCells((settings("a", capacity=0),)), at=100)
        .then(like(CellReconfigured, capacity_units=0), like(AdmissionSelectorOpened))
    )


def test_a_changed_limit_forgets_what_was_reported_under_the_old_one() -> None:
    known = report("a", at=90, enforced=449, observed=2)
    raised = settings("a", 10_000, hard_cap_connections=1_000, unobserved_bound_connections=50)
    (
        given(limited("a"), known)
        .when(ReconcileCells((raised,)), at=100)
        .then(like(CellReconfigured, hard_cap_connections=1_000), like(AdmissionSelectorOpened))
        .then_touches(TouchRuntime("a", CellRuntime(2, known.runtime.heartbeat, None)))
    )


def test_a_changed_bound_is_a_changed_limit() -> None:
    changed = settings("a", 10_000, hard_cap_connections=600, unobserved_bound_connections=51)
    (
        given(limited("a"), report("a", at=90, enforced=0))
        .when(ReconcileCells((changed,)), at=100)
        .then_touches(TouchRuntime("a", report("a", at=90).runtime))
    )


def test_the_first_limit_of_a_cell_forgets_nothing() -> None:
    limit = settings("a", hard_cap_connections=600, unobserved_bound_connections=50)
    (
        given(cell("a"), report("a", at=90))
        .when(ReconcileCells((limit,)), at=100)
        .then(like(CellReconfigured, hard_cap_connections=600), like(AdmissionSelectorOpened))
        .then_touches()
    )


def test_half_a_limit_or_none_keeps_the_known_one() -> None:
    half = settings("a", 10_000, hard_cap_connections=1_000)
    (
        given(limited("a"), report("a", at=90, enforced=0))
        .when(ReconcileCells((half,)), at=100)
        .then(like(AdmissionSelectorOpened))
        .then_touches()
        .when(ReconcileCells((settings("a", 10_000),)), at=100)
        .then_nothing()
    )


def test_two_cells_may_not_have_one_url() -> None:
    twin = CellSettings("b", url("a"), 10)
    (
        given(cell("a"))
        .when(ReconcileCells((settings("a", 20), twin)), at=100)
        .then_refused(CellUrlTaken, cell_id="b", taken_by="a")
        .when(ReconcileCells((settings("c"), CellSettings("d", url("c"), 10))), at=100)
        .then_refused(CellUrlTaken, cell_id="d", taken_by="c")
    )


def test_half_a_connection_limit_is_none() -> None:
    (
        given()
        .when(ReconcileCells((settings("a", hard_cap_connections=600),)), at=100)
        .then(like(CellRegistered, hard_cap_connections=None), AdmissionSelectorOpened(at=100))
    )
