"""Volatile rows beside the log: what cells and hosts last said. No rebuild touches them."""

from collections.abc import Iterable
from typing import Any

import orjson

from domain.ids import HostId
from domain.relay.runtime import (
    CellRuntime,
    Deadline,
    Heartbeat,
    Liveness,
    RehomeCapability,
    RehomeSafety,
    Telemetry,
    Touch,
    TouchDeadline,
    TouchLiveness,
    TouchRuntime,
)
from projections.table import Rows, Table

CELL_RUNTIME = Table(
    "cell_runtime",
    1,
    {
        "cell_id": "text",
        "observed_requests": "bigint",
        "heartbeat": "jsonb",
        "telemetry": "jsonb",
        "rehome_capability": "jsonb",
        "rehome_safety": "jsonb",
    },
)
ASSIGNMENT_LIVENESS = Table(
    "assignment_liveness",
    2,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "lease_expires_at": "bigint",
        "last_activity_at": "bigint",
    },
)
LEASE_DEADLINES = Table(
    "lease_deadlines",
    3,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "activity_id": "text",
        "expires_at": "bigint",
        "updated_at": "bigint",
    },
)
"""A row a lease, so that a command writes only the deadlines that it changes."""
REGION_PREFERENCES = Table(
    "region_preferences",
    2,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "preferred_region": "text",
        "observed_at": "bigint",
    },
)
TABLES = (CELL_RUNTIME, ASSIGNMENT_LIVENESS, LEASE_DEADLINES, REGION_PREFERENCES)
_PARTS = (
    ("heartbeat", Heartbeat),
    ("telemetry", Telemetry),
    ("rehome_capability", RehomeCapability),
    ("rehome_safety", RehomeSafety),
)


def apply_touch(touch: Touch, rows: Rows) -> None:
    """Write one touch."""
    if isinstance(touch, TouchLiveness):
        rows.put(ASSIGNMENT_LIVENESS, *touch)
    elif isinstance(touch, TouchDeadline):
        lease = touch[:3]
        if touch.deadline is None:
            rows.drop(LEASE_DEADLINES, *lease)
        else:
            rows.put(LEASE_DEADLINES, *lease, *touch.deadline)
    elif isinstance(touch, TouchRuntime):
        rows.put(CELL_RUNTIME, touch.cell_id, *_runtime_columns(touch.runtime))
    elif touch.preferred_region is None:
        rows.drop(REGION_PREFERENCES, touch.user_id, touch.relay_host_id)
    else:
        rows.put(REGION_PREFERENCES, *touch)


def liveness_of(hosts: Iterable[Any], leases: Iterable[Any]) -> dict[HostId, Liveness]:
    """Rows of `assignment_liveness` and of `lease_deadlines` as the rules see them."""
    deadlines: dict[HostId, dict[str, Deadline]] = {}
    for user_id, relay_host_id, activity_id, expires_at, updated_at in leases:
        of_host = deadlines.setdefault(HostId(user_id, relay_host_id), {})
        of_host[activity_id] = Deadline(expires_at, updated_at)
    found = {}
    for user_id, relay_host_id, lease_expires_at, last_activity_at in hosts:
        host = HostId(user_id, relay_host_id)
        found[host] = Liveness(lease_expires_at, last_activity_at, deadlines.get(host, {}))
    return found


def runtime_of(row: Any) -> CellRuntime:
    """A row of `cell_runtime`, its JSON columns as text, as the rules see it."""
    parts = {
        name: None if text is None else shape(**orjson.loads(text))
        for (name, shape), text in zip(_PARTS, row[2:], strict=True)
    }
    return CellRuntime(row[1], **parts)


def _runtime_columns(runtime: CellRuntime) -> list[Any]:
    columns: list[Any] = [runtime.observed_requests]
    for name, _ in _PARTS:
        part = getattr(runtime, name)
        columns.append(None if part is None else orjson.dumps(part._asdict()).decode())
    return columns
