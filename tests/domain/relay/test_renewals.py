"""A control is renewed by extending its lease: never shortened, never far ahead, no event."""

import pytest

from domain.limits import CONTROL_RENEWAL_HORIZON_MS
from domain.refusals import (
    ActivityCellNotAuthoritative,
    AssignmentNotFound,
    ControlActivityMoved,
    ControlActivityNotFound,
    InvalidActivityExpiry,
    InvalidActivityId,
)
from domain.relay.activity import AcquireActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign
from domain.relay.assignment import Counts, Lease
from domain.relay.control import ActivateControl
from domain.relay.renewals import Renewal, refused_on_sight
from tests.domain.relay.fleet import HOST, OTHER, active, cell, lasting, settled
from tests.domain.scenario import Scenario, given

CONTROL = "control:a:1"


def attached() -> Scenario:
    """Attached at 100: the control's lease ends at 90 100."""
    return (
        given(cell("a"), cell("b"))
        .after(Assign(HOST), ActivateControl(HOST, "a", 1, 1), at=100)
    )  # fmt: skip


def test_it_extends_the_lease_and_notes_activity_without_an_event() -> None:
    (
        attached()
        .when(RenewControl(HOST, CONTROL, "a", 105_200), at=200)
        .then()
        .then_answers(None)
        .then_touches(
            lasting(HOST, CONTROL, until=105_200, told=200), active(HOST, since=200, until=105_200)
        )
    )


def test_a_late_older_renewal_shortens_nothing() -> None:
    (
        attached()
        .after(RenewControl(HOST, CONTROL, "a", 135_000), at=30_000)
        .when(RenewControl(HOST, CONTROL, "a", 105_000), at=30_000)
        .then_touches(
            lasting(HOST, CONTROL, until=135_000, told=30_000),
            active(HOST, since=30_000, until=135_000),
        )
    )


def test_the_horizon_is_the_lease_and_two_pings() -> None:
    assert CONTROL_RENEWAL_HORIZON_MS == 120_000
    (
        attached()
        .when(RenewControl(HOST, CONTROL, "a", 200 + 120_000), at=200)
        .then()
        .when(RenewControl(HOST, CONTROL, "a", 200 + 120_001), at=200)
        .then_refused(InvalidActivityExpiry, now=200, latest=120_200)
    )


@pytest.mark.parametrize("expires_at", [200, 199, -1, 200.5, float("nan"), float("inf")])
def test_it_must_be_a_whole_time_ahead(expires_at: int | float) -> None:
    (
        attached()
        .when(RenewControl(HOST, CONTROL, "a", expires_at), at=200)
        .then_refused(InvalidActivityExpiry)
    )


@pytest.mark.parametrize("expires_at", [201, 201.0])
def test_the_next_millisecond_is_ahead(expires_at: int | float) -> None:
    attached().when(RenewControl(HOST, CONTROL, "a", expires_at), at=200).then()


def test_it_must_be_named_well() -> None:
    (
        attached()
        .when(RenewControl(HOST, "", "a", 201), at=200)
        .then_refused(InvalidActivityId, length=0)
    )


def test_an_unknown_host_has_no_control() -> None:
    (
        attached()
        .when(RenewControl(OTHER, CONTROL, "a", 201), at=200)
        .then_refused(AssignmentNotFound)
    )


def test_only_the_hosts_cell_renews() -> None:
    (
        attached()
        .when(RenewControl(HOST, CONTROL, "b", 201), at=200)
        .then_refused(ActivityCellNotAuthoritative, cell_id="b", assigned_cell_id="a")
    )


def test_a_released_control_is_not_brought_back() -> None:
    (
        attached()
        .after(ReleaseActivity(HOST, CONTROL), at=200)
        .when(RenewControl(HOST, CONTROL, "a", 301), at=300)
        .then_refused(ControlActivityNotFound)
        .then_leases(HOST)
    )


def test_what_is_no_control_is_not_renewed() -> None:
    (
        attached()
        .after(AcquireActivity(HOST, "s", "splice", "a"), at=200)
        .when(RenewControl(HOST, "s", "a", 301), at=300)
        .then_refused(ControlActivityMoved, kind="splice", cell_id="a")
    )


def test_a_control_that_moved_to_another_cell_is_told() -> None:
    moved = {CONTROL: Lease("control", "b", 1)}
    (
        given(cell("a"), cell("b"), *settled(HOST, "a", counts=Counts(1), leases=moved))
        .when(RenewControl(HOST, CONTROL, "a", 301), at=300)
        .then_refused(ControlActivityMoved, kind="control", cell_id="b")
    )


def test_a_reaped_control_may_be_acquired_again() -> None:
    (
        attached()
        .after(ReleaseActivity(HOST, CONTROL), at=200)
        .after(AcquireActivity(HOST, CONTROL, "control", "a"), at=300)
        .when(RenewControl(HOST, CONTROL, "a", 401), at=400)
        .then()
    )


# many at once


def test_of_many_the_impossible_ones_are_seen_without_looking() -> None:
    items = [
        Renewal("ada", "desktop", CONTROL, 120_100),
        Renewal("ada", "desktop", CONTROL, 120_101),
        Renewal("ada", "desktop", CONTROL, 100),
        Renewal("ada", "desktop", CONTROL, 101),
        Renewal("ada", "desktop", "", 0),
        Renewal("ada", "desktop", "🛰" * 129, 101),
        Renewal("ada", "desktop", "🛰" * 128, 101),
    ]
    assert refused_on_sight(items, 100) == {
        1: "invalid_activity_expiry",
        2: "invalid_activity_expiry",
        4: "invalid_activity_id",
        5: "invalid_activity_id",
    }
