"""Volatile facts: what cells and hosts last said of themselves, valid for seconds or minutes.

They are rows beside the log, not history. What a decision read of them is in its event.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from domain.limits import Region


class Heartbeat(NamedTuple):
    """A cell's last heartbeat. Times are epoch ms."""

    cell_url: str
    cell_incarnation: str
    started_at: int
    ready: bool
    observed_requests: int
    last_heartbeat_at: int


class Telemetry(NamedTuple):
    """The connections a limited cell last reported, complete up to its inclusion watermark."""

    cell_incarnation: str
    inclusion_watermark: int
    total_connections: int
    in_flight_connections: int
    reserved_connections: int
    enforced_connections: int
    snapshot_at: int


class RehomeCapability(NamedTuple):
    """Which regional rehome protocol the running incarnation speaks."""

    cell_incarnation: str
    regional_rehome_protocol: int
    last_heartbeat_at: int


class RehomeSafety(NamedTuple):
    """A cell's own measure of its health over the last window."""

    cell_incarnation: str
    observed_at: int
    sql_failures: int
    reconnects: int
    control_activity_recovery_failures: int
    database_pool_waiting: int
    database_pool_waiters_max: int
    database_pool_wait_ms_max: int


@dataclass(frozen=True, slots=True)
class CellRuntime:
    """All that a cell last reported. `observed_requests` counts only without live cells."""

    observed_requests: int = 0
    heartbeat: Heartbeat | None = None
    telemetry: Telemetry | None = None
    rehome_capability: RehomeCapability | None = None
    rehome_safety: RehomeSafety | None = None


SILENT = CellRuntime()
"""A cell that has reported nothing."""


class Deadline(NamedTuple):
    """When an activity lease ends, and when it was last written. Epoch ms."""

    expires_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Liveness:
    """A host's own deadlines. Epoch ms."""

    lease_expires_at: int
    last_activity_at: int
    deadlines: dict[str, Deadline] = field(default_factory=dict)
    """By lease; copied as `Assignment.leases` are."""


# touches: changes to volatile rows, in the order they were decided


class TouchRuntime(NamedTuple):
    cell_id: str
    runtime: CellRuntime


class TouchLiveness(NamedTuple):
    user_id: str
    relay_host_id: str
    lease_expires_at: int
    last_activity_at: int


class TouchDeadline(NamedTuple):
    """Set a lease's deadline, or drop it with the lease when it is None."""

    user_id: str
    relay_host_id: str
    activity_id: str
    deadline: Deadline | None


class TouchPreference(NamedTuple):
    """Remember the region a host asked for, or forget it when it is None."""

    user_id: str
    relay_host_id: str
    preferred_region: Region | None
    observed_at: int


Touch = TouchRuntime | TouchLiveness | TouchDeadline | TouchPreference
