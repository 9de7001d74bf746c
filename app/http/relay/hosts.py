"""Hosts: their place, their activities, their controls."""

from app.http.access import OPERATOR, READERS
from app.http.declaration import GET, POST, PUT, Answer, Body, Endpoint
from app.http.operation import Operation
from app.http.query import Asked, AtPosition, Query, answered
from app.http.relay import host_forms
from app.http.relay.paths import HostPath, cell_of_host, cell_of_lease, named_cell, own_host
from app.http.reply import Reply
from domain import refusals
from domain.relay import views
from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.control import ActivateControl
from domain.relay.placement import Grant
from domain.relay.standing import standing

GRANT = {
    "user_id": "u-17",
    "relay_host_id": "desktop-1",
    "cell_id": "c-1",
    "cell_url": "https://c-1.example",
    "region": "us-central1",
    "epoch": 1,
    "lease_expires_at": 1_754_000_090_000,
}
GRANTED = Answer("Where the host is.", model=Grant, example=GRANT)

ASSIGN = Operation(
    "Assign",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/assignment",
    tag="hosts",
    summary="Give the host its place, the one it holds or a new one",
    path=HostPath,
    body=Body(host_forms.AssignForm),
    roles={**OPERATOR, "client": own_host},
    command=lambda path, form: Assign(path.host, form.preferred_region, form.placement_region),
    answer=GRANTED,
    refusals=(refusals.RelayCapacityExhausted, refusals.RelayConnectionHeadroomExhausted),
)


async def resolve(asked: Asked[HostPath, AtPosition, None]) -> Reply:
    service = asked.service
    found = await service.reads.where(asked.path.host)
    place, view = found.value or (None, None)
    now, policy = service.clock.now_ms(), service.policy
    grant = views.resolve(place, view, now, policy)
    if grant is None:
        if view is None:
            raise refusals.AssignmentNotFound
        stands = standing(view.cell, view.load, view.runtime, now, policy)
        raise refusals.AssignmentNotFound(**stands.facts(view.cell.cell_id))
    return answered(grant, found.position)


RESOLVE = Query(
    "Resolve",
    GET,
    "/v1/hosts/{user_id}/{relay_host_id}/assignment",
    tag="hosts",
    summary="Where the host is; with live cells required, only if its cell is live",
    path=HostPath,
    query=AtPosition,
    roles={**READERS, "client": own_host},
    ask=resolve,
    answer=Answer("Where the host is.", model=Grant, example=GRANT, headers=("Log-Position",)),
    refusals=(refusals.AssignmentNotFound,),
)


async def verify(asked: Asked[HostPath, AtPosition, host_forms.VerificationForm]) -> Reply:
    claim = asked.form
    found = await asked.service.reads.place(asked.path.host)
    verified = views.verify(found.value, claim.cell_id, claim.epoch)
    return answered(host_forms.Verified(verified), found.position)


VERIFY = Query(
    "VerifyCellAssignment",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/assignment/verification",
    tag="hosts",
    summary="Whether the host is on this cell at this epoch",
    path=HostPath,
    query=AtPosition,
    body=Body(host_forms.VerificationForm),
    roles={**OPERATOR, "client": own_host, "cell": named_cell},
    ask=verify,
    answer=Answer(
        "Whether it is so.",
        model=host_forms.Verified,
        example={"verified": True},
        headers=("Log-Position",),
    ),
)

REBALANCE_DORMANT = Operation(
    "RebalanceDormant",
    PUT,
    "/v1/hosts/{user_id}/{relay_host_id}/assignment/cell",
    tag="hosts",
    summary="Move a dormant host to another general cell",
    path=HostPath,
    body=Body(host_forms.TargetForm),
    roles=OPERATOR,
    command=lambda path, form: RebalanceDormant(path.host, form.target_cell_id),
    answer=GRANTED,
    refusals=(
        refusals.AssignmentNotFound,
        refusals.AssignmentActive,
        refusals.TargetMatchesSource,
        refusals.TargetCellUnavailable,
        refusals.RelayConnectionHeadroomExhausted,
        refusals.RelayCapacityExhausted,
    ),
)

CHANGE_ACTIVITY = Operation(
    "ChangeActivity",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/activity-counts",
    tag="hosts",
    summary="Raise or lower one raw counter; unknown hosts are ignored",
    path=HostPath,
    body=Body(host_forms.ActivityCountForm),
    roles={**OPERATOR, "client": own_host, "cell": cell_of_host},
    command=lambda path, form: ChangeActivity(path.host, form.kind, 1 if form.delta > 0 else -1),
    refusals=(refusals.RelayCapacityExhausted,),
)

ACQUIRE_ACTIVITY = Operation(
    "AcquireActivity",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/activities",
    tag="hosts",
    summary="Begin an activity, renew it, or turn it into another kind",
    path=HostPath,
    body=Body(host_forms.ActivityForm),
    roles={**OPERATOR, "client": own_host, "cell": named_cell},
    command=lambda path, form: AcquireActivity(
        path.host, form.activity_id, form.kind, form.cell_id, form.expires_at
    ),
    refusals=(
        refusals.InvalidActivityId,
        refusals.InvalidActivityExpiry,
        refusals.AssignmentNotFound,
        refusals.ActivityCellNotAuthoritative,
        refusals.HostActivitiesExhausted,
        refusals.RelayCapacityExhausted,
    ),
)

RELEASE_ACTIVITY = Operation(
    "ReleaseActivity",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/activities/releases",
    tag="hosts",
    summary="End an activity",
    path=HostPath,
    body=Body(host_forms.ReleaseForm),
    roles={**OPERATOR, "client": own_host, "cell": cell_of_lease},
    command=lambda path, form: ReleaseActivity(path.host, form.activity_id),
    answer=Answer(
        "Whether there was one.",
        model=host_forms.Released,
        shape=host_forms.Released,
        example={"released": True},
    ),
    refusals=(refusals.InvalidActivityId,),
)

RENEW_CONTROL = Operation(
    "RenewControl",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/activities/renewals",
    tag="hosts",
    summary="Extend a control's lease, never shorten it",
    path=HostPath,
    body=Body(host_forms.RenewForm),
    roles={**OPERATOR, "client": own_host, "cell": named_cell},
    command=lambda path, form: RenewControl(
        path.host, form.activity_id, form.cell_id, form.expires_at
    ),
    refusals=(
        refusals.InvalidActivityId,
        refusals.InvalidActivityExpiry,
        refusals.AssignmentNotFound,
        refusals.ControlActivityNotFound,
        refusals.ActivityCellNotAuthoritative,
        refusals.ControlActivityMoved,
    ),
)

ACTIVATE_CONTROL = Operation(
    "ActivateControl",
    POST,
    "/v1/hosts/{user_id}/{relay_host_id}/controls",
    tag="hosts",
    summary="Make the host's control of one generation live",
    path=HostPath,
    body=Body(host_forms.ControlForm),
    roles={**OPERATOR, "client": own_host, "cell": named_cell},
    command=lambda path, form: ActivateControl(
        path.host,
        form.cell_id,
        form.epoch,
        form.generation,
        form.idle_regional_rehome,
        form.cell_incarnation,
        form.inclusion_watermark,
    ),
    answer=Answer(
        "The control's activity id.",
        model=host_forms.Activated,
        shape=host_forms.Activated,
        example={"activity_id": "control:c-1:3"},
    ),
    refusals=(
        refusals.InvalidActivityId,
        refusals.WrongAssignment,
        refusals.ActivityLeaseShapeMismatch,
        refusals.RelayCapacityExhausted,
    ),
)

OPERATIONS: tuple[Endpoint, ...] = (
    ASSIGN,
    RESOLVE,
    VERIFY,
    REBALANCE_DORMANT,
    CHANGE_ACTIVITY,
    ACQUIRE_ACTIVITY,
    RELEASE_ACTIVITY,
    RENEW_CONTROL,
    ACTIVATE_CONTROL,
)
