"""The recorded operations as HTTP requests."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

Args: TypeAlias = dict[str, Any]
NOT_HTTP = ("restart", "construct")
"""Steps of the recording harness itself."""


class Request(NamedTuple):
    """One HTTP request; `body` is sent as JSON."""

    method: str
    path: str
    body: Any = None


def request_of(operation: str, args: Args) -> Request:
    """The request of a step whose operation has a route."""
    return ROUTES[operation](args)


def _renamed(told: Args, names: Mapping[str, str]) -> Args:
    """The members that were passed, under our names."""
    return {ours: told[theirs] for theirs, ours in names.items() if theirs in told}


def _part(text: Any) -> str:
    return quote(str(text), safe="")


def _host(args: Args, rest: str) -> str:
    identity = args["identity"]
    return f"/v1/hosts/{_part(identity['userId'])}/{_part(identity['relayHostId'])}/{rest}"


def _cell(cell: Args) -> Args:
    names = {"url": "cell_url", "capacityRequests": "capacity_units", "region": "region"}
    body = _renamed(cell, names)
    limit = _renamed(
        cell,
        {
            "connectionHardCap": "hard_cap_connections",
            "connectionUnobservedBound": "unobserved_bound_connections",
        },
    )
    return {**body, "connection_limit": limit} if limit else body


def _reconcile(args: Args, disable_missing: bool) -> Request:
    cells = [
        {"cell_id": cell["id"], **_cell(cell)}
        | _renamed(cell, {"initiallyEnabled": "initially_enabled"})
        for cell in args["cells"]
    ]
    return Request("PUT", "/v1/cells", {"cells": cells, "disable_missing": disable_missing})


def _configure(args: Args) -> Request:
    cell, admission = args["cell"], args["admission"]
    if isinstance(admission, bool):
        admission = "general" if admission else "existing-only"
    return Request("PUT", f"/v1/cells/{_part(cell['id'])}", {**_cell(cell), "admission": admission})


def _admission(args: Args, body: Args) -> Request:
    return Request("PUT", f"/v1/cells/{_part(args['cellId'])}/admission", body)


def _heartbeat(args: Args) -> Request:
    told = args["input"]
    body = _renamed(
        told,
        {
            "cellUrl": "cell_url",
            "cellIncarnation": "cell_incarnation",
            "startedAt": "started_at",
            "ready": "ready",
            "observedRequests": "observed_requests",
            "region": "region",
        },
    )
    connections = _renamed(
        told,
        {
            "totalConnections": "total_connections",
            "inFlightConnections": "in_flight_connections",
            "reservedConnectionUnits": "reserved_connections",
            "enforcedConnectionUnits": "enforced_connections",
            "connectionInclusionWatermark": "inclusion_watermark",
            "connectionHardCap": "hard_cap_connections",
            "connectionUnobservedBound": "unobserved_bound_connections",
        },
    )
    if connections:
        body["connections"] = connections
    return Request("POST", f"/v1/cells/{_part(told['cellId'])}/heartbeats", body)


def _rehome_status(args: Args) -> Request:
    told = args["input"]
    body = _renamed(
        {**told, **told["safety"]},
        {
            "cellIncarnation": "cell_incarnation",
            "regionalRehomeProtocol": "regional_rehome_protocol",
            "observedAt": "observed_at",
            "sqlFailures": "sql_failures",
            "reconnects": "reconnects",
            "controlActivityRecoveryFailures": "control_activity_recovery_failures",
            "databasePoolWaiting": "database_pool_waiting",
            "databasePoolWaitersMax": "database_pool_waiters_max",
            "databasePoolWaitMsMax": "database_pool_wait_ms_max",
        },
    )
    return Request("POST", f"/v1/cells/{_part(told['cellId'])}/rehome-status", body)


def _assign(args: Args) -> Request:
    names = {"preferredRegion": "preferred_region", "placementRegion": "placement_region"}
    return Request("POST", _host(args, "assignment"), _renamed(args, names))


def _verification(args: Args) -> Request:
    told = args["input"]
    body = _renamed(told, {"cellId": "cell_id", "assignmentEpoch": "epoch"})
    return Request("POST", _host({"identity": told}, "assignment/verification"), body)


def _activity(args: Args, rest: str) -> Request:
    names = {"activityId": "activity_id", "kind": "kind", "cellId": "cell_id"}
    body = _renamed(args["input"], {**names, "expiresAt": "expires_at"})
    return Request("POST", _host(args, rest), body)


def _control(args: Args) -> Request:
    body = _renamed(
        args["input"],
        {
            "cellId": "cell_id",
            "assignmentEpoch": "epoch",
            "generation": "generation",
            "idleRegionalRehome": "idle_regional_rehome",
            "cellIncarnation": "cell_incarnation",
            "connectionInclusionWatermark": "inclusion_watermark",
        },
    )
    return Request("POST", _host(args, "controls"), body)


def _sweep(name: str) -> Callable[[Args], Request]:
    return lambda _: Request("POST", f"/v1/sweeps/{name}")


ROUTES: Mapping[str, Callable[[Args], Request]] = {
    "reconcileCells": lambda a: _reconcile(a, a.get("disableMissing", True)),
    "reconcileCellsAtStartup": lambda a: _reconcile(a, False),
    "configureCell": _configure,
    "setCellEnabled": lambda a: _admission(a, {"enabled": a["enabled"]}),
    "setCellAdmissionState": lambda a: _admission(a, {"admission": a["state"]}),
    "recordCellHeartbeat": _heartbeat,
    "recordCellRegionalRehomeStatus": _rehome_status,
    "assign": _assign,
    "resolve": lambda a: Request("GET", _host(a, "assignment")),
    "verifyCellAssignment": _verification,
    "rebalanceDormant": lambda a: Request(
        "PUT", _host(a, "assignment/cell"), {"target_cell_id": a["targetCellId"]}
    ),
    "changeActivity": lambda a: Request(
        "POST", _host(a, "activity-counts"), {"kind": a["kind"], "delta": a["delta"]}
    ),
    "acquireActivity": lambda a: _activity(a, "activities"),
    "releaseActivity": lambda a: Request(
        "POST", _host(a, "activities/releases"), {"activity_id": a["activityId"]}
    ),
    "renewControlActivity": lambda a: _activity(a, "activities/renewals"),
    "activateControl": _control,
    "releaseExpiredActivityLeases": _sweep("activity-leases"),
    "releaseExpiredActivity": _sweep("activity"),
    "releaseExpiredRegionPreferences": _sweep("region-preferences"),
    "regionCatalog": lambda _: Request("GET", "/v1/regions"),
    "cellDeploymentStatus": lambda a: Request("GET", f"/v1/cells/{_part(a['cellId'])}"),
}
"""A trace stops at the first operation that is not here."""
