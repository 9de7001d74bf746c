"""Questions that change nothing: resolve, verify, regions, a cell's deployment status."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.ids import PENDING_CONTROL_PREFIX
from domain.limits import (
    REBIND_RESERVE_CONNECTIONS,
    REGION_PROBE_ORIGINS_MAX,
    REGIONS,
    Region,
)
from domain.relay.cell import Admission, Cell
from domain.relay.headroom import fresh, live, telemetry_fresh
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from domain.relay.runtime import CellRuntime
from domain.relay.turn import Load


@dataclass(frozen=True, slots=True)
class Place:
    """Where a host is, as the projections tell it."""

    user_id: str
    relay_host_id: str
    cell_id: str
    epoch: int
    lease_expires_at: int


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell with what it holds and what it last reported."""

    cell: Cell
    load: Load
    runtime: CellRuntime


@dataclass(frozen=True, slots=True)
class RegionOrigins:
    """Up to two origins that a host may probe to measure its distance to a region."""

    region: Region
    probe_origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CellUse:
    """How much of a cell is in use, counted over all hosts."""

    assignments: int
    activity_leases: int
    pending_control_leases: int


def pending_control(activity_id: str, kind: str, units: int) -> bool:
    """Whether a lease is a well-formed pending control, which never blocks a restart."""
    return kind == "control" and units == 1 and activity_id.startswith(PENDING_CONTROL_PREFIX)


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    hard_cap: int
    control_rebind_reserve: int
    ordinary_connection_limit: int
    unobserved_bound: int
    normal_admission_pause: int
    observed_connections: int
    in_flight_connections: int
    reserved_connection_units: int
    enforced_connection_units: int
    pending_control_reservations: int
    heartbeat_fresh: bool


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    cell_url: str
    cell_incarnation: str
    started_at: int
    ready: bool
    observed_requests: int
    last_heartbeat_at: int
    heartbeat_fresh: bool
    regional_rehome_protocol: int


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """All an operator needs to know before restarting a cell. Pending controls never block it."""

    cell_id: str
    cell_url: str
    region: Region
    enabled: bool
    admission_state: Admission
    capacity_requests: int
    reserved_requests: int
    assignments: int
    activity_leases: int
    activity_request_units: int
    restart_blocking_activity_leases: int
    restart_blocking_activity_request_units: int
    restart_blocking_reserved_requests: int
    outgoing_migrations: int
    incoming_migrations: int
    connection_capacity: ConnectionStatus | None
    runtime: RuntimeStatus | None


def resolve(place: Place | None, view: CellView | None, now: int, policy: Policy) -> Grant | None:
    """Where the host is; None when it is nowhere or, with live cells, its cell is not live."""
    if place is None or view is None or not live(view.runtime, now, policy):
        return None
    return Grant(
        place.user_id,
        place.relay_host_id,
        view.cell.cell_id,
        view.cell.cell_url,
        view.cell.region,
        place.epoch,
        place.lease_expires_at,
    )


def verify(place: Place | None, cell_id: str, epoch: int) -> bool:
    """Whether the host is on this cell at this epoch."""
    return place is not None and (place.cell_id, place.epoch) == (cell_id, epoch)


def region_catalog(views: Iterable[CellView], now: int, policy: Policy) -> list[RegionOrigins]:
    """Live general cells by region, the first two by id."""
    origins: dict[Region, list[str]] = {}
    for view in sorted(views, key=lambda it: it.cell.cell_id):
        heartbeat = view.runtime.heartbeat
        if (
            view.cell.admission == "general"
            and heartbeat is not None
            and heartbeat.ready
            and fresh(heartbeat.last_heartbeat_at, now, policy)
        ):
            origins.setdefault(view.cell.region, []).append(view.cell.cell_url)
    return [
        RegionOrigins(region, tuple(origins[region][:REGION_PROBE_ORIGINS_MAX]))
        for region in REGIONS
        if region in origins
    ]


def deployment_status(view: CellView, use: CellUse, now: int, policy: Policy) -> DeploymentStatus:
    """The cell's settings, load and health. Migrations are counted once they exist."""
    cell, load = view.cell, view.load
    pending = use.pending_control_leases
    return DeploymentStatus(
        cell_id=cell.cell_id,
        cell_url=cell.cell_url,
        region=cell.region,
        enabled=cell.enabled,
        admission_state=cell.admission,
        capacity_requests=cell.capacity_units,
        reserved_requests=load.reserved_units,
        assignments=use.assignments,
        activity_leases=use.activity_leases,
        activity_request_units=load.leased_units,
        restart_blocking_activity_leases=use.activity_leases - pending,
        restart_blocking_activity_request_units=load.leased_units - pending,
        restart_blocking_reserved_requests=load.reserved_units - pending,
        outgoing_migrations=0,
        incoming_migrations=0,
        connection_capacity=_connection_status(view, now, policy),
        runtime=_runtime_status(view, now, policy),
    )


def _connection_status(view: CellView, now: int, policy: Policy) -> ConnectionStatus | None:
    hard_cap = view.cell.hard_cap_connections
    bound = view.cell.unobserved_bound_connections
    if hard_cap is None or bound is None:
        return None
    told = view.runtime.telemetry
    return ConnectionStatus(
        hard_cap=hard_cap,
        control_rebind_reserve=REBIND_RESERVE_CONNECTIONS,
        ordinary_connection_limit=hard_cap - REBIND_RESERVE_CONNECTIONS,
        unobserved_bound=bound,
        normal_admission_pause=hard_cap - REBIND_RESERVE_CONNECTIONS - bound,
        observed_connections=told.total_connections if told else 0,
        in_flight_connections=told.in_flight_connections if told else 0,
        reserved_connection_units=told.reserved_connections if told else 0,
        enforced_connection_units=told.enforced_connections if told else 0,
        pending_control_reservations=view.load.connections,
        heartbeat_fresh=telemetry_fresh(view.runtime, now, policy),
    )


def _runtime_status(view: CellView, now: int, policy: Policy) -> RuntimeStatus | None:
    heartbeat, capability = view.runtime.heartbeat, view.runtime.rehome_capability
    if heartbeat is None:
        return None
    current = capability and capability.cell_incarnation == heartbeat.cell_incarnation
    return RuntimeStatus(
        cell_url=heartbeat.cell_url,
        cell_incarnation=heartbeat.cell_incarnation,
        started_at=heartbeat.started_at,
        ready=heartbeat.ready,
        observed_requests=heartbeat.observed_requests,
        last_heartbeat_at=heartbeat.last_heartbeat_at,
        heartbeat_fresh=fresh(heartbeat.last_heartbeat_at, now, policy),
        regional_rehome_protocol=(
            capability.regional_rehome_protocol if capability and current else 0
        ),
    )
