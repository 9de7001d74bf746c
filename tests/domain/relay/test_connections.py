"""Expected connections of a limited cell: reserved, claimed, released by a snapshot."""

import pytest

from domain.relay.activity import ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.assignment import Opened, Shift
from domain.relay.cell import CellStarted
from domain.relay.connection import ConnectionsReleased
from domain.relay.control import ActivateControl, Claimed, ControlActivated
from domain.relay.placement import ControlRegranted, HostPlaced
from tests.domain.relay.expected import TIMEOUT, expected_on_a, observed, owed_on_a
from tests.domain.relay.fleet import (
    HOST,
    LEASE,
    PENDING,
    cell,
    limited,
    report,
)
from tests.domain.scenario import given, like


def test_a_grant_reserves_one_until_its_lease_ends() -> None:
    (
        given(limited("a"), report("a", at=100, enforced=0))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, connection=Opened(1, TIMEOUT), shifts=(Shift("a", 1, 1, 1, 1),)))
        .then_connections(HOST, "reserved")
    )


def test_a_cell_without_a_limit_expects_none() -> None:
    (
        given(cell("a"))
        .when(Assign(HOST), at=100)
        .then(like(HostPlaced, connection=None))
        .then_connections(HOST)
        .then_load("a", 1, 1, connections=0)
    )


# claimed


def test_a_control_claims_the_reservation() -> None:
    (
        expected_on_a()
        .when(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=5), at=200)
        .then(like(ControlActivated, claimed_connection=Claimed(1, 5), reclaimed_connections=()))
        .then_connections(HOST, "claimed")
        .then_load("a", 1, 1, connections=1)
    )


def test_the_same_control_claims_once() -> None:
    (
        expected_on_a()
        .after(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=5), at=200)
        .when(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=9), at=300)
        .then()
        .then_connections(HOST, "claimed")
    )


def test_a_newer_control_takes_the_claim_over() -> None:
    (
        expected_on_a()
        .after(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=5), at=200)
        .when(ActivateControl(HOST, "a", 1, 2, inclusion_watermark=6), at=300)
        .then(like(ControlActivated, reclaimed_connections=(1,), claimed_connection=None))
        .then_connections(HOST, "claimed")
    )


def test_a_late_host_claims_its_debt() -> None:
    (
        owed_on_a()
        .when(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=5), at=TIMEOUT + 1)
        .then(like(ControlActivated, claimed_connection=Claimed(1, 5)))
        .then_connections(HOST, "claimed")
    )


def test_while_one_is_claimed_a_second_is_not() -> None:
    (
        expected_on_a()
        .after(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=5), at=200)
        .after(ReleaseActivity(HOST, "control:a:1"), at=300)
        .when(Assign(HOST), at=400)
        .then(like(ControlRegranted, connection=Opened(2, 400 + LEASE)))
        .when(ActivateControl(HOST, "a", 1, 1), at=500)
        .then(like(ControlActivated, claimed_connection=None))
        .then_connections(HOST, "claimed", "reserved")
    )


def test_a_retry_shares_what_is_still_expected() -> None:
    (
        owed_on_a()
        .given(report("a", at=TIMEOUT, enforced=0))
        .when(Assign(HOST), at=TIMEOUT + 1)
        .then(like(ControlRegranted, connection=None))
        .after(ActivateControl(HOST, "a", 1, 1), at=TIMEOUT + 2)
        .when(ActivateControl(HOST, "a", 1, 1), at=TIMEOUT + 3)
        .then_connections(HOST, "claimed")
        .then_load("a", 1, 1, connections=1)
    )


# released by a snapshot


@pytest.mark.parametrize(("watermark", "released"), [(4, False), (5, True), (6, True)])
def test_a_snapshot_that_includes_the_claim_releases_it(watermark: int, released: bool) -> None:
    decided = observed(
        expected_on_a().after(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=5), at=200),
        at=300,
        watermark=watermark,
    )
    if released:
        decided.then(
            like(CellStarted, cell_id="a"),
            ConnectionsReleased(
                at=300,
                user_id="ada",
                relay_host_id="desktop",
                shifts=(Shift("a", 0, 1, 1, 0),),
                connections=(1,),
                reason="observed",
            ),
        ).then_connections(HOST)
    else:
        decided.then_connections(HOST, "claimed").then_load("a", 1, 1, connections=1)


def test_a_claim_without_a_watermark_is_never_observed() -> None:
    scenario = expected_on_a().after(ActivateControl(HOST, "a", 1, 1), at=200)
    observed(scenario, at=300, watermark=1_000_000).then_connections(HOST, "claimed")


def test_the_same_generation_may_claim_anew_after_its_first_was_observed() -> None:
    (
        observed(
            expected_on_a().after(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=1), at=200),
            at=300,
            watermark=2,
        )
        .after(ReleaseActivity(HOST, "control:a:1"), at=400)
        .after(Assign(HOST), at=500)
        .when(ActivateControl(HOST, "a", 1, 1, inclusion_watermark=3), at=600)
        .then(like(ControlActivated, claimed_connection=Claimed(2, 3), renamed_from=PENDING))
        .then_connections(HOST, "claimed")
    )
