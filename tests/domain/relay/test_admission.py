"""Whom a cell admits: everyone, migrations only, or those it has."""

import pytest

from domain.refusals import CellNotFound
from domain.relay.cell import (
    Admission,
    AdmissionSelectorOpened,
    CellAdmissionChanged,
    admission_of,
)
from domain.relay.inventory import SetCellAdmission
from tests.domain.relay.fleet import admitted, cell
from tests.domain.scenario import given, like

ADMISSIONS: tuple[Admission, ...] = ("existing-only", "migration-only", "general")


@pytest.mark.parametrize("before", ADMISSIONS)
@pytest.mark.parametrize("admission", ADMISSIONS)
def test_every_admission_may_follow_every_other(before: Admission, admission: Admission) -> None:
    decided = given(cell("a", admission=before)).when(SetCellAdmission("a", admission), at=100)
    if before == admission:
        decided.then(AdmissionSelectorOpened(at=100))
    else:
        decided.then(
            CellAdmissionChanged(
                at=100, cell_id="a", before=before, admission=admission, reason="operator"
            ),
            AdmissionSelectorOpened(at=100),
        )


def test_the_selector_opens_once() -> None:
    (
        given(cell("a"))
        .after(SetCellAdmission("a", "general"), at=100)
        .when(SetCellAdmission("a", "existing-only"), at=200)
        .then(like(CellAdmissionChanged, at=200))
        .when(SetCellAdmission("a", "existing-only"), at=300)
        .then_nothing()
    )


def test_only_a_real_change_moves_the_time_of_change() -> None:
    scenario = given(cell("a"), admitted("a", "migration-only"))
    assert scenario.facts.cells["a"].admission_changed_at == 0
    scenario.after(SetCellAdmission("a", "general"), at=100)
    scenario.after(SetCellAdmission("a", "general"), at=200)
    assert scenario.facts.cells["a"].admission_changed_at == 100


def test_an_unknown_cell_admits_nobody() -> None:
    (
        given()
        .when(SetCellAdmission("missing", "general"), at=0)
        .then_refused(CellNotFound, cell_id="missing")
    )


def test_the_older_flag_stands_for_an_admission() -> None:
    assert admission_of(True) == "general"
    assert admission_of(False) == "existing-only"
    cells = given(*(cell(it, admission=it) for it in ADMISSIONS)).facts.cells
    assert [it.enabled for it in cells.values()] == [False, True, True]
