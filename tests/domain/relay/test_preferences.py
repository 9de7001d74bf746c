"""The region a host asked for is remembered for 30 days, even when it gets no place."""

from domain.limits import REGION_PREFERENCE_RETENTION_MS
from domain.refusals import (
    CellNotFound,
    RelayCapacityExhausted,
    RelayConnectionHeadroomExhausted,
)
from domain.relay.assign import Assign
from domain.relay.assignment import Counts
from domain.relay.command import OldPreferences
from domain.relay.expiry import ForgetOldPreferences
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from domain.relay.runtime import TouchPreference
from domain.relay.turn import Facts, Load, ReadSet
from tests.domain.relay.fleet import DAY, HOST, OTHER, TTL, active, cell, limited, report, settled
from tests.domain.scenario import LIVE_CELLS, given, like


def remembered(at: int) -> TouchPreference:
    return TouchPreference(*HOST, "asia-east2", at)


ASKING = Assign(HOST, "asia-east2")


def test_a_place_is_not_left_for_a_preference_but_the_preference_is_kept() -> None:
    (
        given(cell("us"), cell("east", region="asia-east2"))
        .after(Assign(HOST), at=1_000)
        .when(ASKING, at=2_000)
        .then()
        .then_answers(like(Grant, cell_id="us"))
        .then_touches(remembered(2_000), active(HOST, since=2_000))
        .when(Assign(HOST), at=3_000)
        .then_touches(active(HOST, since=3_000))
    )


def test_a_new_host_without_room_leaves_nothing() -> None:
    given().when(ASKING, at=100).then_refused(RelayCapacityExhausted)


def test_a_known_host_without_room_leaves_its_preference() -> None:
    (
        given(cell("a", admission="existing-only"), *settled(HOST, "a"), active(HOST, since=0))
        .when(ASKING, at=DAY)
        .then_refused(RelayCapacityExhausted, remembered(DAY), region="asia-east2")
    )


def test_a_host_on_a_dead_limited_cell_leaves_its_preference() -> None:
    (
        given(limited("a"), report("a", at=0), *settled(HOST, "a"), policy=LIVE_CELLS)
        .given(active(HOST, since=0))
        .when(ASKING, at=TTL)
        .then_refused(RelayCapacityExhausted, remembered(TTL), cell_id="a")
    )


def test_a_quiet_host_on_a_full_closed_cell_leaves_its_preference() -> None:
    closed = cell("a", admission="migration-only", hard_cap=600, bound=50)
    (
        given(closed, report("a", at=0), *settled(HOST, "a"), active(HOST, since=0))
        .when(ASKING, at=100)
        .then_refused(RelayConnectionHeadroomExhausted, remembered(100), cell_id="a")
    )


def test_an_active_host_without_headroom_leaves_nothing() -> None:
    (
        given(limited("a"), *settled(HOST, "a", counts=Counts(invites=1)), active(HOST, since=0))
        .when(ASKING, at=100)
        .then_refused(RelayConnectionHeadroomExhausted, cell_id="a")
    )


def test_a_regrant_without_room_leaves_nothing() -> None:
    (
        given(cell("a", capacity=1), *settled(HOST, "a", loads={"a": Load(1)}))
        .given(active(HOST, since=0))
        .when(ASKING, at=100)
        .then_refused(RelayCapacityExhausted, cell_id="a")
    )


def test_a_host_on_an_unknown_cell_leaves_nothing() -> None:
    (
        given(*settled(HOST, "gone"), active(HOST, since=0))
        .when(ASKING, at=100)
        .then_refused(CellNotFound, cell_id="gone")
    )


# forgetting


def test_old_ones_are_forgotten() -> None:
    (
        given()
        .when(ForgetOldPreferences(), at=9_999, found=[HOST, OTHER])
        .then()
        .then_touches(TouchPreference(*HOST, None, 9_999), TouchPreference(*OTHER, None, 9_999))
        .then_answers(2)
        .when(ForgetOldPreferences(), at=9_999)
        .then_nothing()
        .then_answers(0)
    )


def test_they_are_old_after_thirty_days() -> None:
    assert REGION_PREFERENCE_RETENTION_MS == 30 * DAY
    scan = ForgetOldPreferences().scan(ReadSet(Policy(), Facts()), now=31 * DAY)
    assert scan == OldPreferences(before=DAY)


def test_what_was_asked_for_last_is_remembered() -> None:
    (
        given(cell("a"))
        .after(ASKING, at=100)
        .when(Assign(HOST, "us-central1"), at=200)
        .then_touched(TouchPreference(*HOST, "us-central1", 200))
    )
