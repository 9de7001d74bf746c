"""Volatile rows beside the log: what cells and hosts last said. No rebuild touches them."""

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
    TouchPreference,
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
        "next_deadline_at": "bigint",
        "deadlines": "jsonb",
    },
)
"""One row a host, so that a renewal writes one. `deadlines`: activity id to [expires, updated]."""
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
TABLES = (CELL_RUNTIME, ASSIGNMENT_LIVENESS, REGION_PREFERENCES)
_PARTS = (
    ("heartbeat", Heartbeat),
    ("telemetry", Telemetry),
    ("rehome_capability", RehomeCapability),
    ("rehome_safety", RehomeSafety),
)


def apply_touch(touch: Touch, rows: Rows) -> None:
    """Write one touch of a cell or a preference. Hosts are written whole, by `put_liveness`."""
    if isinstance(touch, TouchRuntime):
        rows.put(CELL_RUNTIME, touch.cell_id, *_runtime_columns(touch.runtime))
    elif isinstance(touch, TouchPreference):
        if touch.preferred_region is None:
            rows.drop(REGION_PREFERENCES, touch.user_id, touch.relay_host_id)
        else:
            rows.put(REGION_PREFERENCES, *touch)


def put_liveness(host: HostId, alive: Liveness, rows: Rows) -> None:
    """Write a host's deadlines as they are after a decision."""
    deadlines = alive.deadlines
    soonest = min([it.expires_at for it in deadlines.values()], default=None)
    written = orjson.dumps({key: [*it] for key, it in deadlines.items()}).decode()
    rows.put(
        ASSIGNMENT_LIVENESS,
        *host,
        alive.lease_expires_at,
        alive.last_activity_at,
        soonest,
        written,
    )


def liveness_of(row: Any) -> Liveness:
    """A row of `assignment_liveness`, its deadlines as text, as the rules see it."""
    told = orjson.loads(row[5])
    return Liveness(row[2], row[3], {key: Deadline(*value) for key, value in told.items()})


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
