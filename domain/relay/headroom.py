"""Whether a cell is alive and has connection headroom (contract 4.7)."""

from domain.limits import REBIND_RESERVE_CONNECTIONS
from domain.relay.cell import Cell
from domain.relay.policy import Policy
from domain.relay.runtime import CellRuntime
from domain.relay.turn import Load


def fresh(reported_at: int, now: int, policy: Policy) -> bool:
    """Whether a report still counts: strictly younger than the heartbeat TTL."""
    return reported_at > now - policy.heartbeat_ttl_ms


def live(runtime: CellRuntime, now: int, policy: Policy) -> bool:
    """Whether the last heartbeat is ready and fresh; always, if live cells are not required."""
    if not policy.require_live_cells:
        return True
    heartbeat = runtime.heartbeat
    return (
        heartbeat is not None
        and heartbeat.ready
        and fresh(heartbeat.last_heartbeat_at, now, policy)
    )


def telemetry_fresh(runtime: CellRuntime, now: int, policy: Policy) -> bool:
    """Whether the reported connections are fresh and of the running incarnation."""
    telemetry, heartbeat = runtime.telemetry, runtime.heartbeat
    return (
        telemetry is not None
        and heartbeat is not None
        and fresh(telemetry.snapshot_at, now, policy)
        and telemetry.cell_incarnation == heartbeat.cell_incarnation
    )


def has_headroom(cell: Cell, load: Load, runtime: CellRuntime, now: int, policy: Policy) -> bool:
    """Whether one more control may be expected. Cells without a limit always have headroom."""
    if cell.hard_cap_connections is None:
        return True
    if not telemetry_fresh(runtime, now, policy):
        return False
    assert runtime.telemetry is not None
    assert cell.unobserved_bound_connections is not None
    expected = (
        runtime.telemetry.enforced_connections
        + load.connections
        + cell.unobserved_bound_connections
    )
    return expected < cell.hard_cap_connections - REBIND_RESERVE_CONNECTIONS
