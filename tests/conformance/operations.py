"""The original's operations as our commands and questions, and our answers in its words."""

from collections.abc import Callable
from typing import Any

from adapters.ports import LogReader
from domain.ids import HostId
from domain.limits import DEFAULT_REGION
from domain.refusals import CellNotFound
from domain.relay import views
from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.cell import admission_of
from domain.relay.command import Command
from domain.relay.connection import LapseConnections
from domain.relay.control import ActivateControl
from domain.relay.expiry import ForgetOldPreferences, ReleaseExpiredCounts, ReleaseExpiredLeases
from domain.relay.heartbeat import ConnectionReport, RecordHeartbeat, RecordRehomeStatus
from domain.relay.inventory import CellSettings, ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.placement import Grant
from domain.relay.policy import Policy

Args = dict[str, Any]


def _host(args: Args) -> HostId:
    return HostId(args["identity"]["userId"], args["identity"]["relayHostId"])


def _settings(cell: Args) -> CellSettings:
    return CellSettings(
        cell_id=cell["id"],
        cell_url=cell["url"],
        capacity_units=cell["capacityRequests"],
        region=cell.get("region", DEFAULT_REGION),
        initially_enabled=cell.get("initiallyEnabled", True),
        hard_cap_connections=cell.get("connectionHardCap"),
        unobserved_bound_connections=cell.get("connectionUnobservedBound"),
    )


def _heartbeat(args: Args) -> RecordHeartbeat:
    told = args["input"]
    return RecordHeartbeat(
        cell_id=told["cellId"],
        cell_url=told["cellUrl"],
        cell_incarnation=told["cellIncarnation"],
        started_at=told["startedAt"],
        ready=told["ready"],
        observed_requests=told["observedRequests"],
        region=told.get("region", DEFAULT_REGION),
        connections=ConnectionReport(
            told.get("totalConnections"),
            told.get("inFlightConnections"),
            told.get("reservedConnectionUnits"),
            told.get("enforcedConnectionUnits"),
            told.get("connectionInclusionWatermark"),
            told.get("connectionHardCap"),
            told.get("connectionUnobservedBound"),
        ),
    )


def _rehome_status(args: Args) -> RecordRehomeStatus:
    told, safety = args["input"], args["input"]["safety"]
    return RecordRehomeStatus(
        told["cellId"],
        told["cellIncarnation"],
        told["regionalRehomeProtocol"],
        safety["observedAt"],
        safety["sqlFailures"],
        safety["reconnects"],
        safety["controlActivityRecoveryFailures"],
        safety["databasePoolWaiting"],
        safety["databasePoolWaitersMax"],
        safety["databasePoolWaitMsMax"],
    )


def _activation(args: Args) -> ActivateControl:
    told = args["input"]
    return ActivateControl(
        _host(args),
        told["cellId"],
        told["assignmentEpoch"],
        told["generation"],
        told.get("idleRegionalRehome", False),
        told.get("cellIncarnation", ""),
        told.get("connectionInclusionWatermark"),
    )


def _acquisition(args: Args) -> AcquireActivity:
    told = args["input"]
    return AcquireActivity(
        _host(args), told["activityId"], told["kind"], told["cellId"], told.get("expiresAt")
    )


def _configuration(args: Args) -> ConfigureCell:
    admission = args["admission"]
    if isinstance(admission, bool):
        admission = admission_of(admission)
    return ConfigureCell(_settings(args["cell"]), admission)


COMMANDS: dict[str, Callable[[Args], Command]] = {
    "reconcileCells": lambda a: ReconcileCells(
        tuple(_settings(it) for it in a["cells"]), a.get("disableMissing", True)
    ),
    "reconcileCellsAtStartup": lambda a: ReconcileCells(
        tuple(_settings(it) for it in a["cells"]), disable_missing=False
    ),
    "configureCell": _configuration,
    "setCellEnabled": lambda a: SetCellAdmission(a["cellId"], admission_of(a["enabled"])),
    "setCellAdmissionState": lambda a: SetCellAdmission(a["cellId"], a["state"]),
    "recordCellHeartbeat": _heartbeat,
    "recordCellRegionalRehomeStatus": _rehome_status,
    "assign": lambda a: Assign(_host(a), a.get("preferredRegion"), a.get("placementRegion")),
    "changeActivity": lambda a: ChangeActivity(_host(a), a["kind"], a["delta"]),
    "acquireActivity": _acquisition,
    "releaseActivity": lambda a: ReleaseActivity(_host(a), a["activityId"]),
    "activateControl": _activation,
    "renewControlActivity": lambda a: RenewControl(
        _host(a), a["input"]["activityId"], a["input"]["cellId"], a["input"]["expiresAt"]
    ),
    "rebalanceDormant": lambda a: RebalanceDormant(_host(a), a["targetCellId"]),
}

SWEEPS: dict[str, tuple[Command, ...]] = {
    "releaseExpiredActivityLeases": (LapseConnections(), ReleaseExpiredLeases()),
    "releaseExpiredActivity": (ReleaseExpiredCounts(),),
    "releaseExpiredRegionPreferences": (ForgetOldPreferences(),),
}
"""Commands repeated until nothing is due; the last one's answers add up to the answer."""


def _resolve(args: Args, reader: LogReader, now: int, policy: Policy) -> Any:
    place = reader.place(_host(args))
    view = next((v for v in reader.views() if place and v.cell.cell_id == place.cell_id), None)
    return views.resolve(place, view, now, policy)


def _verify(args: Args, reader: LogReader, _now: int, _policy: Policy) -> Any:
    told = args["input"]
    place = reader.place(HostId(told["userId"], told["relayHostId"]))
    return views.verify(place, told["cellId"], told["assignmentEpoch"])


def _regions(_args: Args, reader: LogReader, now: int, policy: Policy) -> Any:
    found = views.region_catalog(reader.views(), now, policy)
    return [{"region": it.region, "probeOrigins": list(it.probe_origins)} for it in found]


def _status(args: Args, reader: LogReader, now: int, policy: Policy) -> Any:
    cell_id = args["cellId"]
    view = next((it for it in reader.views() if it.cell.cell_id == cell_id), None)
    if view is None:
        raise CellNotFound(cell_id=cell_id)
    return views.deployment_status(view, reader.use(cell_id), now, policy)


QUESTIONS: dict[str, Callable[[Args, LogReader, int, Policy], Any]] = {
    "resolve": _resolve,
    "verifyCellAssignment": _verify,
    "regionCatalog": _regions,
    "cellDeploymentStatus": _status,
}


def policy_of(config: Args) -> Policy:
    return Policy(
        require_live_cells=config.get("requireLiveCells", False),
        heartbeat_ttl_ms=config.get("heartbeatTtlMs", 45_000),
        regional_rehome_cohort_percent=config.get("regionalRehomeCohortPercent", 0),
    )


def original_words(answer: Any) -> Any:
    """Our answer as the original would give it."""
    if isinstance(answer, Grant):
        return {
            "userId": answer.user_id,
            "relayHostId": answer.relay_host_id,
            "cellId": answer.cell_id,
            "cellUrl": answer.cell_url,
            "region": answer.region,
            "assignmentEpoch": answer.epoch,
            "leaseExpiresAt": answer.lease_expires_at,
        }
    if isinstance(answer, views.DeploymentStatus):
        return camel(answer)
    return answer


def camel(value: Any) -> Any:
    """A dataclass with its members named like the original's."""
    names = getattr(value, "__dataclass_fields__", None)
    if names is None:
        return value
    return {
        "".join(part.title() if i else part for i, part in enumerate(name.split("_"))): camel(
            getattr(value, name)
        )
        for name in names
    }
