"""A limited cell's heartbeat tells its connections: exact sums, watermarks that only rise."""

from dataclasses import replace

import pytest

from domain.refusals import (
    CellConnectionLimitNotConfigured,
    CellConnectionTelemetryMismatch,
    StaleConnectionSnapshot,
)
from domain.relay.heartbeat import NO_CONNECTIONS, ConnectionReport
from domain.relay.runtime import CellRuntime, Heartbeat, Telemetry, TouchRuntime
from tests.domain.relay.fleet import beat, cell, connections, limited, url
from tests.domain.scenario import Scenario, given


def told(
    at: int, watermark: int, *parts: int, incarnation: str = "one", started_at: int = 50
) -> TouchRuntime:
    """What is stored at a time: connections in total, in flight, reserved and enforced."""
    total, in_flight, reserved, enforced = parts
    telemetry = Telemetry(incarnation, watermark, total, in_flight, reserved, enforced, at)
    heartbeat = Heartbeat(url("a"), incarnation, started_at, True, 0, at)
    return TouchRuntime("a", CellRuntime(0, heartbeat, telemetry))


def heard() -> Scenario:
    """Last heard at 100 with watermark 10."""
    return (
        given(limited("a"))
        .after(beat("a", told=connections(120, 2, 3, watermark=10)), at=100)
    )  # fmt: skip


def test_a_report_that_adds_up_is_kept() -> None:
    (
        given(limited("a"))
        .when(beat("a", told=connections(120, 2, 3)), at=100)
        .then_touches(told(100, 0, 120, 2, 3, 125))
    )


def test_more_than_the_cap_is_kept_too() -> None:
    (
        given(limited("a"))
        .when(beat("a", told=connections(601)), at=100)
        .then_touches(told(100, 0, 601, 0, 0, 601))
    )


@pytest.mark.parametrize(
    "report",
    [
        NO_CONNECTIONS,
        connections(550, 2, 3, enforced=554),
        connections(1, hard_cap=1_000),
        connections(1, bound=51),
        replace(connections(1), total_connections=None, enforced_connections=0),
        replace(connections(1), in_flight_connections=None),
        replace(connections(1), reserved_connections=None),
        replace(connections(1), enforced_connections=None),
        replace(connections(1), hard_cap_connections=None),
        replace(connections(1), unobserved_bound_connections=None),
    ],
)
def test_every_part_must_be_there_and_match(report: ConnectionReport) -> None:
    (
        given(limited("a"))
        .when(beat("a", told=report), at=100)
        .then_refused(
            CellConnectionTelemetryMismatch,
            cell_id="a",
            hard_cap_connections=600,
            unobserved_bound_connections=50,
        )
    )


@pytest.mark.parametrize(
    "report",
    [
        connections(0),
        ConnectionReport(total_connections=0),
        ConnectionReport(inclusion_watermark=0),
        ConnectionReport(hard_cap_connections=600),
    ],
)
def test_a_cell_without_a_limit_reports_none_of_it(report: ConnectionReport) -> None:
    (
        given(cell("a"))
        .when(beat("a", told=report), at=100)
        .then_refused(CellConnectionLimitNotConfigured, cell_id="a")
    )


# watermarks


@pytest.mark.parametrize("watermark", [9, 10])
def test_a_watermark_must_rise(watermark: int) -> None:
    (
        heard()
        .when(beat("a", told=connections(0, watermark=watermark)), at=200)
        .then_refused(StaleConnectionSnapshot, cell_id="a", inclusion_watermark=10)
        .when(beat("a", told=connections(0, watermark=11)), at=200)
        .then_touches(told(200, 11, 0, 0, 0, 0))
    )


def test_without_a_watermark_it_rises_by_one() -> None:
    heard().when(beat("a", told=connections(1)), at=200).then_touches(told(200, 11, 1, 0, 0, 1))


def test_a_new_incarnation_begins_anew() -> None:
    (
        heard()
        .when(beat("a", incarnation="two", started_at=60, told=connections(0, watermark=0)), at=200)
        .then_touches(told(200, 0, 0, 0, 0, 0, incarnation="two", started_at=60))
    )


def test_a_first_watermark_below_zero_is_stale() -> None:
    (
        given(limited("a"))
        .when(beat("a", told=connections(0, watermark=-1)), at=100)
        .then_refused(StaleConnectionSnapshot, inclusion_watermark=-1)
    )


def test_a_refused_report_does_not_start_the_cell() -> None:
    (
        heard()
        .when(beat("a", incarnation="two", started_at=60), at=200)
        .then_refused(CellConnectionTelemetryMismatch)
        .when(beat("a", told=connections(0)), at=300)
        .then()
    )
