"""Questions: where a host is, where regions can be probed, whether a cell may be restarted."""

from dataclasses import replace

import pytest

from domain.limits import Region
from domain.relay.cell import Admission, Cell, evolve_cell
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from domain.relay.runtime import SILENT, CellRuntime, RehomeCapability
from domain.relay.turn import NO_LOAD, Load
from domain.relay.views import (
    CellUse,
    CellView,
    ConnectionStatus,
    DeploymentStatus,
    Place,
    RegionOrigins,
    RuntimeStatus,
    deployment_status,
    pending_control,
    region_catalog,
    resolve,
    verify,
)
from tests.domain.relay.fleet import TTL, cell, limited, report, url

ANY_CELL, LIVE_CELLS = Policy(require_live_cells=False), Policy()
PLACE = Place("ada", "desktop", "a", 3, 90_100)


def view(
    cell_id: str,
    *,
    region: Region = "us-central1",
    admission: Admission = "general",
    runtime: CellRuntime = SILENT,
    load: Load = NO_LOAD,
) -> CellView:
    known = evolve_cell(None, cell(cell_id, region=region, admission=admission))
    return CellView(known, load, runtime)


def heard(cell_id: str, *, at: int = 100, ready: bool = True) -> CellRuntime:
    return report(cell_id, at=at, ready=ready).runtime


# where a host is


def test_a_host_is_where_its_assignment_says() -> None:
    found = resolve(PLACE, view("a"), 0, ANY_CELL)
    assert found == Grant("ada", "desktop", "a", url("a"), "us-central1", 3, 90_100)


@pytest.mark.parametrize(
    ("runtime", "now", "found"),
    [
        (heard("a"), 100 + TTL - 1, True),
        (heard("a"), 100 + TTL, False),
        (heard("a", ready=False), 100, False),
        (SILENT, 100, False),
    ],
)
def test_with_live_cells_only_a_live_cell_is_told(
    runtime: CellRuntime, now: int, found: bool
) -> None:
    assert bool(resolve(PLACE, view("a", runtime=runtime), now, LIVE_CELLS)) is found
    assert resolve(PLACE, view("a", runtime=runtime), now, ANY_CELL)


def test_a_host_without_a_place_is_nowhere() -> None:
    assert resolve(None, None, 0, ANY_CELL) is None
    assert resolve(PLACE, None, 0, ANY_CELL) is None


@pytest.mark.parametrize(
    ("cell_id", "epoch", "right"), [("a", 3, True), ("b", 3, False), ("a", 2, False)]
)
def test_cell_and_epoch_are_verified_exactly(cell_id: str, epoch: int, right: bool) -> None:
    assert verify(PLACE, cell_id, epoch) is right
    assert verify(None, cell_id, epoch) is False


# regions


def fleet(**admissions: Admission) -> list[CellView]:
    cells: list[tuple[str, Region]] = [
        ("us", "us-central1"),
        ("c3", "asia-east2"),
        ("c2", "asia-east2"),
        ("c1", "asia-east2"),
    ]
    return [
        view(key, region=region, admission=admissions.get(key, "general"), runtime=heard(key))
        for key, region in cells
    ]


def test_a_region_has_its_first_two_open_cells_to_probe() -> None:
    assert region_catalog(fleet(), 100, ANY_CELL) == [
        RegionOrigins("us-central1", (url("us"),)),
        RegionOrigins("asia-east2", (url("c1"), url("c2"))),
    ]
    assert region_catalog(fleet(c2="migration-only"), 100, ANY_CELL)[1] == RegionOrigins(
        "asia-east2", (url("c1"), url("c3"))
    )
    closed = fleet(c2="migration-only", c3="existing-only", us="existing-only")
    assert region_catalog(closed, 100, ANY_CELL) == [RegionOrigins("asia-east2", (url("c1"),))]


@pytest.mark.parametrize(
    ("runtime", "probed"),
    [
        (heard("a", at=100), True),
        (heard("a", at=101 - TTL), True),
        (heard("a", at=100 - TTL), False),
        (heard("a", ready=False), False),
        (SILENT, False),
    ],
)
def test_only_live_cells_are_probed_whatever_the_policy(runtime: CellRuntime, probed: bool) -> None:
    for policy in (ANY_CELL, LIVE_CELLS):
        assert bool(region_catalog([view("a", runtime=runtime)], 100, policy)) is probed


# deployment status


def status(seen: CellView, use: CellUse, now: int = 100) -> DeploymentStatus:
    return deployment_status(seen, use, now, LIVE_CELLS)


def blocking(load: Load, use: CellUse) -> tuple[int, int, int]:
    """What blocks a restart: leases, units by leases, units by counters."""
    told = status(view("a", load=load), use)
    return (
        told.restart_blocking_activity_leases,
        told.restart_blocking_activity_request_units,
        told.restart_blocking_reserved_requests,
    )


def test_a_status_tells_all_of_a_cell() -> None:
    seen = view("a", runtime=heard("a"), load=Load(7, 7))
    assert status(seen, CellUse(1, 6, 0)) == DeploymentStatus(
        cell_id="a",
        cell_url=url("a"),
        region="us-central1",
        enabled=True,
        admission_state="general",
        capacity_requests=10,
        reserved_requests=7,
        assignments=1,
        activity_leases=6,
        activity_request_units=7,
        restart_blocking_activity_leases=6,
        restart_blocking_activity_request_units=7,
        restart_blocking_reserved_requests=7,
        outgoing_migrations=0,
        incoming_migrations=0,
        connection_capacity=None,
        runtime=RuntimeStatus(url("a"), "one", 50, True, 0, 100, True, 0),
    )


@pytest.mark.parametrize(
    ("load", "use", "blocks"),
    [
        (Load(1, 1), CellUse(1, 1, 1), (0, 0, 0)),
        (Load(1, 1), CellUse(1, 1, 0), (1, 1, 1)),
        (Load(1, 2), CellUse(1, 1, 0), (1, 2, 1)),
        (Load(0, 1), CellUse(1, 1, 1), (0, 0, -1)),
        (Load(2, 1), CellUse(1, 1, 1), (0, 0, 1)),
        (Load(2, 2), CellUse(1, 2, 1), (1, 1, 1)),
    ],
    ids=[
        "a pending control never blocks",
        "a live control does",
        "a malformed pending control does",
        "less reserved than leased",
        "more reserved than leased",
        "a migration beside a pending control",
    ],
)
def test_what_blocks_a_restart(load: Load, use: CellUse, blocks: tuple[int, int, int]) -> None:
    assert blocking(load, use) == blocks


def test_a_pending_control_is_one_unit_of_a_control_with_a_pending_id() -> None:
    assert pending_control("control-pending:1", "control", 1)
    assert not pending_control("control-pending:1", "control", 2)
    assert not pending_control("control-pending:1", "splice", 1)
    assert not pending_control("control:a:1", "control", 1)


def limited_view(load: Load = NO_LOAD, enforced: int | None = 125) -> CellView:
    runtime = report("a", at=100, enforced=enforced).runtime
    if runtime.telemetry is not None:
        telemetry = runtime.telemetry._replace(
            total_connections=120, in_flight_connections=2, reserved_connections=3
        )
        runtime = replace(runtime, telemetry=telemetry)
    return CellView(evolve_cell(None, limited("a")), load, runtime)


def test_a_limited_cell_tells_its_connections() -> None:
    told = status(limited_view(Load(0, 0, 4)), CellUse(0, 0, 0)).connection_capacity
    assert told == ConnectionStatus(
        hard_cap=600,
        control_rebind_reserve=100,
        ordinary_connection_limit=500,
        unobserved_bound=50,
        normal_admission_pause=450,
        observed_connections=120,
        in_flight_connections=2,
        reserved_connection_units=3,
        enforced_connection_units=125,
        pending_control_reservations=4,
        heartbeat_fresh=True,
    )


@pytest.mark.parametrize(
    ("hard_cap", "bound", "ordinary", "pause"),
    [(600, 50, 500, 450), (1_000, 60, 900, 840), (3_000, 0, 2_900, 2_900)],
)
def test_its_limits_follow_from_the_hard_cap(
    hard_cap: int, bound: int, ordinary: int, pause: int
) -> None:
    known: Cell = evolve_cell(None, limited("a", hard_cap=hard_cap, bound=bound))
    told = status(CellView(known, Load(), SILENT), CellUse(0, 0, 0)).connection_capacity
    assert told is not None
    assert (told.ordinary_connection_limit, told.normal_admission_pause) == (ordinary, pause)
    assert told.heartbeat_fresh is False


def test_its_connections_are_stale_with_the_ttl_or_without_a_snapshot() -> None:
    for seen, now in ((limited_view(), 100 + TTL), (limited_view(enforced=None), 100)):
        told = status(seen, CellUse(0, 0, 0), now)
        assert told.connection_capacity is not None
        assert told.connection_capacity.heartbeat_fresh is False


def test_the_heartbeat_is_stale_with_the_ttl() -> None:
    for age, is_fresh in ((TTL - 1, True), (TTL, False)):
        told = status(view("a", runtime=heard("a")), CellUse(0, 0, 0), 100 + age)
        assert told.runtime is not None
        assert told.runtime.heartbeat_fresh is is_fresh
    assert status(view("a"), CellUse(0, 0, 0)).runtime is None


@pytest.mark.parametrize(("incarnation", "protocol"), [("one", 3), ("zero", 0)])
def test_the_rehome_protocol_is_that_of_the_running_incarnation(
    incarnation: str, protocol: int
) -> None:
    runtime = replace(heard("a"), rehome_capability=RehomeCapability(incarnation, 3, 60))
    told = status(view("a", runtime=runtime), CellUse(0, 0, 0))
    assert told.runtime is not None
    assert told.runtime.regional_rehome_protocol == protocol
