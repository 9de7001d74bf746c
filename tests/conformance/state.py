"""The whole observable state in the original's words, read from our tables."""

from typing import Any

from adapters.ports import LogReader
from projections.relay.volatile import runtime_of

PARTS_TO_COME: dict[str, Any] = {
    "migrations": [],
    "rehomeAttempts": [],
    "rehomeControl": None,
    "rehomeWorker": None,
    "fences": [],
    "committedFences": [],
    "legacyFenceAdoptions": [],
    "fenceAttempts": [],
    "fenceInvocations": [],
    "drainAttempts": [],
    "drainRecoveries": [],
    "admissionIntents": [],
    "regionDecisions": [],
    "processLocal": {"idleCandidateOffset": 0, "quarantine": []},
}
"""What operations of later issues will fill; a trace stops before it differs."""


def observed_state(reader: LogReader) -> dict[str, Any]:
    return {
        "cells": _cells(reader),
        "assignments": _assignments(reader),
        "activityLeases": _leases(reader),
        "controlCapabilities": _controls(reader),
        "connectionReservations": _connections(reader),
        "regionPreferences": [
            dict(zip(("userId", "relayHostId", "preferredRegion", "observedAt"), row, strict=True))
            for row in reader.dump("region_preferences")
        ],
        "admissionSelector": _selector(reader),
        **PARTS_TO_COME,
    }


def _cells(reader: LogReader) -> list[dict[str, Any]]:
    loads = {row[0]: row[1:] for row in reader.dump("cell_reservations")}
    runtimes = {row[0]: runtime_of(row) for row in reader.dump("cell_runtime")}
    cells = []
    for row in reader.dump("cells"):
        cell_id, url, region, capacity, hard_cap, bound, admission, changed_at = row[:8]
        runtime = runtimes.get(cell_id)
        limit = None
        if hard_cap is not None:
            limit = {"hardCap": hard_cap, "unobservedBound": bound}
        cells.append(
            {
                "cellId": cell_id,
                "cellUrl": url,
                "region": region,
                "enabled": admission != "existing-only",
                "admission": admission,
                "admissionUpdatedAt": changed_at,
                "capacityRequests": capacity,
                "reservedRequests": loads[cell_id][0],
                "observedRequests": runtime.observed_requests if runtime else 0,
                "runtime": _named(runtime and runtime.heartbeat),
                "rehomeCapability": _capability(runtime and runtime.rehome_capability),
                "rehomeSafety": _named(runtime and runtime.rehome_safety),
                "connectionLimit": limit,
                "connectionRuntime": _connection_runtime(runtime and runtime.telemetry),
                "connectionSnapshot": _snapshot(runtime and runtime.telemetry),
            }
        )
    return cells


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _named(part: Any) -> Any:
    return {_camel(k): v for k, v in part._asdict().items()} if part else None


def _capability(part: Any) -> Any:
    if part is None:
        return None
    return {
        "cellIncarnation": part.cell_incarnation,
        "regionalRehomeProtocol": part.regional_rehome_protocol,
    }


def _connection_runtime(part: Any) -> Any:
    if part is None:
        return None
    return {
        "cellIncarnation": part.cell_incarnation,
        "totalConnections": part.total_connections,
        "inFlightConnections": part.in_flight_connections,
        "reservedConnectionUnits": part.reserved_connections,
        "enforcedConnectionUnits": part.enforced_connections,
        "lastHeartbeatAt": part.snapshot_at,
    }


def _snapshot(part: Any) -> Any:
    if part is None:
        return None
    runtime = _connection_runtime(part)
    at = runtime.pop("lastHeartbeatAt")
    return {**runtime, "inclusionWatermark": part.inclusion_watermark, "snapshotAt": at}


def _assignments(reader: LogReader) -> list[dict[str, Any]]:
    liveness = {row[:2]: row[2:4] for row in reader.dump("assignment_liveness")}
    return [
        {
            "userId": user_id,
            "relayHostId": host_id,
            "cellId": cell_id,
            "assignmentEpoch": epoch,
            "leaseExpiresAt": liveness[user_id, host_id][0],
            "lastActivityAt": liveness[user_id, host_id][1],
            "reservedControls": counts[0],
            "reservedSplices": counts[1],
            "reservedInvites": counts[2],
            "pendingInstalls": counts[3],
            "pendingConfirmations": counts[4],
            "migrationLeases": counts[5],
        }
        for user_id, host_id, cell_id, epoch, *counts in reader.dump("assignments")
    ]


def _leases(reader: LogReader) -> list[dict[str, Any]]:
    deadlines = {row[:3]: row[3:] for row in reader.dump("lease_deadlines")}
    return [
        {
            "userId": user_id,
            "relayHostId": host_id,
            "activityId": activity_id,
            "kind": kind,
            "cellId": cell_id,
            "requestUnits": units,
            "expiresAt": deadlines[user_id, host_id, activity_id][0],
            "updatedAt": deadlines[user_id, host_id, activity_id][1],
        }
        for user_id, host_id, activity_id, kind, cell_id, units in reader.dump("activity_leases")
    ]


def _controls(reader: LogReader) -> list[dict[str, Any]]:
    names = (
        "userId",
        "relayHostId",
        "activityId",
        "cellId",
        "cellIncarnation",
        "assignmentEpoch",
        "generation",
        "idleRegionalRehome",
    )
    return [dict(zip(names, row, strict=True)) for row in reader.dump("controls")]


def _connections(reader: LogReader) -> list[dict[str, Any]]:
    rows = sorted(reader.dump("connection_reservations"), key=lambda row: row[3])
    return [
        {
            "ordinal": ordinal,
            "userId": row[0],
            "relayHostId": row[1],
            "assignmentEpoch": row[5],
            "cellId": row[4],
            "state": row[6],
            "inclusionWatermark": row[7],
            "claimActivityId": row[8],
            "createdAt": row[9],
            "timeoutAt": row[10],
            "claimedAt": row[11],
            "releasedAt": row[12],
        }
        for ordinal, row in enumerate(rows, 1)
    ]


def _selector(reader: LogReader) -> Any:
    if not reader.dump("admission_selector"):
        return None
    membership: dict[str, list[str]] = {"existingOnly": [], "migrationOnly": [], "general": []}
    for row in reader.dump("cells"):
        membership[_camel(row[6].replace("-", "_"))].append(row[0])
    return {"generation": 0, "attemptId": None, "membership": membership}
