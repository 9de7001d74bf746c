"""What a cell reports of itself: heartbeats, connections, rehome health (contract 3, 4.7)."""

from dataclasses import dataclass, replace

from domain.limits import DEFAULT_REGION, Region
from domain.refusals import (
    CellConnectionLimitNotConfigured,
    CellConnectionTelemetryMismatch,
    CellOriginMismatch,
    CellRegionMismatch,
    StaleCellIncarnation,
    StaleConnectionSnapshot,
)
from domain.relay.cell import Cell, CellStarted
from domain.relay.command import Command, ObservedConnections, Scan
from domain.relay.connection import observe_connections
from domain.relay.runtime import (
    SILENT,
    CellRuntime,
    Heartbeat,
    RehomeCapability,
    RehomeSafety,
    Telemetry,
)
from domain.relay.turn import ReadSet, Turn

# commands


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """The connection part of a heartbeat. A limited cell must fill all but the watermark."""

    total_connections: int | None = None
    in_flight_connections: int | None = None
    reserved_connections: int | None = None
    enforced_connections: int | None = None
    inclusion_watermark: int | None = None
    hard_cap_connections: int | None = None
    unobserved_bound_connections: int | None = None


NO_CONNECTIONS = ConnectionReport()


@dataclass(frozen=True, slots=True)
class RecordHeartbeat(Command):
    """A cell says that it runs. `started_at` is the incarnation's start, epoch ms.

    Refuses `cell_not_found`, `cell_origin_mismatch`, `cell_region_mismatch`,
    `stale_cell_incarnation`, `cell_connection_telemetry_mismatch`,
    `cell_connection_limit_not_configured`, `stale_connection_snapshot`.
    """

    cell_id: str
    cell_url: str
    cell_incarnation: str
    started_at: int
    ready: bool
    observed_requests: int
    region: Region = DEFAULT_REGION
    connections: ConnectionReport = NO_CONNECTIONS

    def scan(self, read_set: ReadSet, now: int) -> Scan | None:
        cell = read_set.facts.cells.get(self.cell_id)
        if cell is None or not cell.limited:
            return None
        runtime = read_set.facts.runtimes.get(self.cell_id, SILENT)
        watermark = self.connections.inclusion_watermark
        if watermark is None:
            watermark = _last_watermark(runtime, self) + 1
        return ObservedConnections(self.cell_id, watermark, now)


@dataclass(frozen=True, slots=True)
class RecordRehomeStatus(Command):
    """A cell says which rehome protocol it speaks and how healthy it is.

    Refuses `stale_cell_incarnation`.
    """

    cell_id: str
    cell_incarnation: str
    regional_rehome_protocol: int
    observed_at: int
    sql_failures: int
    reconnects: int
    control_activity_recovery_failures: int
    database_pool_waiting: int
    database_pool_waiters_max: int
    database_pool_wait_ms_max: int


# decide


def record_heartbeat(turn: Turn, command: RecordHeartbeat) -> None:
    cell = turn.require_cell(command.cell_id)
    if cell.cell_url != command.cell_url:
        raise CellOriginMismatch(cell_id=cell.cell_id)
    if cell.region != command.region:
        raise CellRegionMismatch(cell_id=cell.cell_id, region=cell.region)
    runtime = turn.runtime(cell.cell_id)
    _require_incarnation(cell, command)
    _require_connections(cell, command.connections)
    telemetry = _telemetry(turn, cell, runtime, command)
    if cell.cell_incarnation != command.cell_incarnation:
        turn.record(
            CellStarted(
                at=turn.now,
                cell_id=cell.cell_id,
                cell_incarnation=command.cell_incarnation,
                started_at=command.started_at,
                previous_incarnation=cell.cell_incarnation,
            )
        )
    observed = command.observed_requests
    if turn.policy.require_live_cells:
        observed = runtime.observed_requests
    heartbeat = Heartbeat(
        command.cell_url,
        command.cell_incarnation,
        command.started_at,
        command.ready,
        command.observed_requests,
        turn.now,
    )
    after = replace(runtime, observed_requests=observed, heartbeat=heartbeat, telemetry=telemetry)
    turn.touch_runtime(cell.cell_id, after)
    if cell.limited and telemetry is not None:
        observe_connections(turn, cell.cell_id, telemetry.inclusion_watermark)


def record_rehome_status(turn: Turn, command: RecordRehomeStatus) -> None:
    cell = turn.cell(command.cell_id)
    if cell is None or cell.cell_incarnation != command.cell_incarnation:
        raise StaleCellIncarnation(cell_id=command.cell_id)
    capability = RehomeCapability(
        command.cell_incarnation, command.regional_rehome_protocol, turn.now
    )
    safety = RehomeSafety(
        command.cell_incarnation,
        command.observed_at,
        command.sql_failures,
        command.reconnects,
        command.control_activity_recovery_failures,
        command.database_pool_waiting,
        command.database_pool_waiters_max,
        command.database_pool_wait_ms_max,
    )
    runtime = turn.runtime(cell.cell_id)
    turn.touch_runtime(
        cell.cell_id, replace(runtime, rehome_capability=capability, rehome_safety=safety)
    )


def _require_incarnation(cell: Cell, command: RecordHeartbeat) -> None:
    """The same incarnation keeps its start; another one must have started strictly later."""
    if cell.cell_incarnation is None or cell.started_at is None:
        return
    same = cell.cell_incarnation == command.cell_incarnation
    if command.started_at != cell.started_at if same else command.started_at <= cell.started_at:
        raise StaleCellIncarnation(cell_id=cell.cell_id, started_at=cell.started_at)


def _require_connections(cell: Cell, report: ConnectionReport) -> None:
    """A limited cell reports sums that add up under its own limit; another reports nothing."""
    if not cell.limited:
        if report != NO_CONNECTIONS:
            raise CellConnectionLimitNotConfigured(cell_id=cell.cell_id)
        return
    parts = (report.total_connections, report.in_flight_connections, report.reserved_connections)
    if (
        None in parts
        or report.enforced_connections != sum(part or 0 for part in parts)
        or report.hard_cap_connections != cell.hard_cap_connections
        or report.unobserved_bound_connections != cell.unobserved_bound_connections
    ):
        raise CellConnectionTelemetryMismatch(
            cell_id=cell.cell_id,
            hard_cap_connections=cell.hard_cap_connections,
            unobserved_bound_connections=cell.unobserved_bound_connections,
        )


def _telemetry(
    turn: Turn, cell: Cell, runtime: CellRuntime, command: RecordHeartbeat
) -> Telemetry | None:
    """The new snapshot of a limited cell: its watermark may only rise within an incarnation."""
    if not cell.limited:
        return runtime.telemetry
    report, previous = command.connections, _last_watermark(runtime, command)
    watermark = report.inclusion_watermark
    if watermark is None:
        watermark = previous + 1
    elif watermark <= previous:
        raise StaleConnectionSnapshot(cell_id=cell.cell_id, inclusion_watermark=previous)
    return Telemetry(
        command.cell_incarnation,
        watermark,
        report.total_connections or 0,
        report.in_flight_connections or 0,
        report.reserved_connections or 0,
        report.enforced_connections or 0,
        turn.now,
    )


def _last_watermark(runtime: CellRuntime, command: RecordHeartbeat) -> int:
    """The newest watermark of the reporting incarnation; -1 before its first."""
    known = runtime.telemetry
    if known is None or known.cell_incarnation != command.cell_incarnation:
        return -1
    return known.inclusion_watermark
