"""Every refusal of the contract, in one tree. The class says how to react, the code says why.

Refusal
├── Malformed      the request could never succeed
├── NotFound       it names a thing that does not exist
├── Conflict       the present state forbids it
└── Exhausted      there is no room now; later there may be
"""

from typing import ClassVar, TypeAlias

Fact: TypeAlias = str | int | float | bool | None


class Refusal(Exception):
    """A command's answer "no": a stable code and the facts that led to it."""

    code: ClassVar[str] = "refused"
    title: ClassVar[str] = "The command was refused"

    def __init__(self, **facts: Fact) -> None:
        super().__init__(self.code)
        self.facts = facts


class Malformed(Refusal):
    """The request could never succeed, whatever the state."""


class NotFound(Refusal):
    """The request names a thing that does not exist."""


class Conflict(Refusal):
    """The present state forbids the command."""


class Exhausted(Refusal):
    """There is no room now; the same command may succeed later."""


# Malformed


class InvalidActivityId(Malformed):
    code = "invalid_activity_id"
    title = "An activity id has 1 to 256 characters"


class InvalidActivityExpiry(Malformed):
    code = "invalid_activity_expiry"
    title = "The expiry is not a time the lease may last to"


class InvalidRegionalRehomeCohort(Malformed):
    code = "invalid_regional_rehome_cohort"
    title = "The cohort is a whole percentage from 0 to 100"


# Not found


class AssignmentNotFound(NotFound):
    code = "assignment_not_found"
    title = "The host has no assignment"


class CellNotFound(NotFound):
    code = "cell_not_found"
    title = "No cell has this id"


class ControlActivityNotFound(NotFound):
    code = "control_activity_not_found"
    title = "The host holds no activity with this id"


# Conflict


class ActivityCellNotAuthoritative(Conflict):
    code = "activity_cell_not_authoritative"
    title = "The host is not assigned to this cell"


class ActivityLeaseShapeMismatch(Conflict):
    code = "activity_lease_shape_mismatch"
    title = "A control lease does not weigh one unit"


class AssignmentActive(Conflict):
    code = "assignment_active"
    title = "The host has activity or was active within 24 hours"


class CellCapacityBelowReserved(Conflict):
    code = "cell_capacity_below_reserved"
    title = "The cell holds more units than the new capacity"


class CellConnectionLimitNotConfigured(Conflict):
    code = "cell_connection_limit_not_configured"
    title = "The cell reports connections but has no connection limit"


class CellConnectionTelemetryMismatch(Conflict):
    code = "cell_connection_telemetry_mismatch"
    title = "The reported connections do not add up or do not match the limit"


class CellOriginMismatch(Conflict):
    code = "cell_origin_mismatch"
    title = "The heartbeat comes from another origin than configured"


class CellRegionMismatch(Conflict):
    code = "cell_region_mismatch"
    title = "The heartbeat comes from another region than configured"


class CellUrlTaken(Conflict):
    code = "cell_url_taken"
    title = "Another cell has this URL"


class ControlActivityMoved(Conflict):
    code = "control_activity_moved"
    title = "The activity is no control of this cell"


class StaleCellIncarnation(Conflict):
    code = "stale_cell_incarnation"
    title = "The report is not from the cell's newest incarnation"


class StaleConnectionSnapshot(Conflict):
    code = "stale_connection_snapshot"
    title = "A snapshot with this or a higher watermark is already known"


class TargetCellUnavailable(Conflict):
    code = "target_cell_unavailable"
    title = "The target cell does not take hosts"


class TargetMatchesSource(Conflict):
    code = "target_matches_source"
    title = "The host is already on the target cell"


class WrongAssignment(Conflict):
    code = "wrong_assignment"
    title = "The host is not assigned to this cell at this epoch"


# Exhausted


class HostActivitiesExhausted(Exhausted):
    code = "host_activities_exhausted"
    title = "The host has as many activities as a host may have"


class RelayCapacityExhausted(Exhausted):
    code = "relay_capacity_exhausted"
    title = "No cell can take this now"


class RelayConnectionHeadroomExhausted(Exhausted):
    code = "relay_connection_headroom_exhausted"
    title = "The cell cannot take another connection now"
