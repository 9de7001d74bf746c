"""A host that is expected on a limited cell, and one that did not come in time."""

from domain.limits import LATE_ARRIVAL_DEBT_RETENTION_MS
from domain.relay.assign import Assign
from domain.relay.connection import LapseConnections
from domain.relay.expiry import ReleaseExpiredLeases
from tests.domain.relay.fleet import (
    HOST,
    LEASE,
    beat,
    connections,
    limited,
    report,
)
from tests.domain.scenario import Decided, Scenario, given

TIMEOUT = 100 + LEASE
RETENTION = LATE_ARRIVAL_DEBT_RETENTION_MS


def expected_on_a() -> Scenario:
    """One host is expected on a; its connection times out at `TIMEOUT`."""
    return given(limited("a"), report("a", at=100, enforced=0)).after(Assign(HOST), at=100)


def owed_on_a() -> Scenario:
    """The host did not come in time, and its pending control was taken back."""
    return (
        expected_on_a()
        .after(LapseConnections(), ReleaseExpiredLeases(), at=TIMEOUT, found=[HOST])
    )  # fmt: skip


def observed(scenario: Scenario | Decided, at: int, watermark: int | None) -> Decided:
    told = connections(0, watermark=watermark)
    return scenario.when(beat("a", told=told), at=at, found=[HOST])
