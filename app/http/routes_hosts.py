"""Hosts: their place, their activities, their controls."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.http import access, models_hosts, problems
from app.http.commands import Call, service_of
from app.http.document import DONE, Answer, Described, Refusals, operation
from app.http.models import RelayHostIdPath, UserIdPath
from app.http.questions import MinPosition, WaitMs, answered, reached
from domain import refusals
from domain.ids import HostId
from domain.relay import views
from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.control import ActivateControl
from domain.relay.placement import Grant
from domain.relay.standing import standing

router = APIRouter(prefix="/v1/hosts/{user_id}/{relay_host_id}")

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


def _command(
    name: str,
    summary: str,
    answer: Answer,
    form: Any,
    refused: Refusals,
    roles: Any = access.HOSTS_AND_CELLS,
) -> dict[str, Any]:
    return operation(
        Described(name, summary, "hosts", (answer,), roles, (form,), tuple(refused), command=True)
    )


@router.post(
    "/assignment",
    **_command(
        "Assign",
        "Give the host its place, the one it holds or a new one",
        GRANTED,
        models_hosts.AssignForm,
        (refusals.RelayCapacityExhausted, refusals.RelayConnectionHeadroomExhausted),
        access.HOSTS,
    ),
)
async def assign(request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_host(access.HOSTS, host)
    body = await call.body(models_hosts.ASSIGN)
    return await call.execute(Assign(host, body.preferred_region, body.placement_region))


@router.get(
    "/assignment",
    **operation(
        Described(
            "Resolve",
            "Where the host is; with live cells required, only if its cell is live",
            "hosts",
            (Answer("Where the host is.", model=Grant, example=GRANT, headers=("Log-Position",)),),
            access.HOST_READERS,
            refusals=(refusals.AssignmentNotFound, problems.PositionNotReached),
        )
    ),
)
async def resolve(
    request: Request,
    user_id: UserIdPath,
    relay_host_id: RelayHostIdPath,
    min_position: MinPosition = None,
    wait_ms: WaitMs = 0,
) -> Response:
    service, host = service_of(request), HostId(user_id, relay_host_id)
    (await access.identify(request, service)).require_host(access.HOST_READERS, host)
    await reached(service, min_position, wait_ms)
    found = await service.reads.where(host)
    place, view = found.value or (None, None)
    now, policy = service.clock.now_ms(), service.policy
    grant = views.resolve(place, view, now, policy)
    if grant is None:
        if view is None:
            raise refusals.AssignmentNotFound
        stands = standing(view.cell, view.load, view.runtime, now, policy)
        raise refusals.AssignmentNotFound(**stands.facts(view.cell.cell_id))
    return answered(grant, found.position)


@router.post(
    "/assignment/verification",
    **operation(
        Described(
            "VerifyCellAssignment",
            "Whether the host is on this cell at this epoch",
            "hosts",
            (
                Answer(
                    "Whether it is so.",
                    model=models_hosts.Verified,
                    example={"verified": True},
                    headers=("Log-Position",),
                ),
            ),
            access.HOSTS_AND_CELLS,
            (models_hosts.VerificationForm,),
            (problems.PositionNotReached,),
        )
    ),
)
async def verify_cell_assignment(
    request: Request,
    user_id: UserIdPath,
    relay_host_id: RelayHostIdPath,
    min_position: MinPosition = None,
    wait_ms: WaitMs = 0,
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_host(access.HOSTS_AND_CELLS, host)
    body = await call.body(models_hosts.VERIFICATION)
    call.caller.require_cell(access.HOSTS_AND_CELLS, body.cell_id)
    await reached(call.service, min_position, wait_ms)
    found = await call.service.reads.place(host)
    verified = views.verify(found.value, body.cell_id, body.epoch)
    return answered({"verified": verified}, found.position)


@router.put(
    "/assignment/cell",
    **_command(
        "RebalanceDormant",
        "Move a dormant host to another general cell",
        GRANTED,
        models_hosts.TargetForm,
        (
            refusals.AssignmentNotFound,
            refusals.AssignmentActive,
            refusals.TargetMatchesSource,
            refusals.TargetCellUnavailable,
            refusals.RelayConnectionHeadroomExhausted,
            refusals.RelayCapacityExhausted,
        ),
        access.OPERATOR,
    ),
)
async def rebalance_dormant(
    request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_role(access.OPERATOR)
    body = await call.body(models_hosts.TARGET)
    return await call.execute(RebalanceDormant(host, body.target_cell_id))


@router.post(
    "/activity-counts",
    **_command(
        "ChangeActivity",
        "Raise or lower one raw counter; unknown hosts are ignored",
        DONE,
        models_hosts.ActivityCountForm,
        (refusals.RelayCapacityExhausted,),
    ),
)
async def change_activity(
    request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    await call.require_cell_of_host(access.HOSTS_AND_CELLS, host)
    body = await call.body(models_hosts.ACTIVITY_COUNT)
    return await call.execute(ChangeActivity(host, body.kind, 1 if body.delta > 0 else -1))


@router.post(
    "/activities",
    **_command(
        "AcquireActivity",
        "Begin an activity, renew it, or turn it into another kind",
        DONE,
        models_hosts.ActivityForm,
        (
            refusals.InvalidActivityId,
            refusals.InvalidActivityExpiry,
            refusals.AssignmentNotFound,
            refusals.ActivityCellNotAuthoritative,
            refusals.HostActivitiesExhausted,
            refusals.RelayCapacityExhausted,
        ),
    ),
)
async def acquire_activity(
    request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_host(access.HOSTS_AND_CELLS, host)
    body = await call.body(models_hosts.ACTIVITY)
    call.caller.require_cell(access.HOSTS_AND_CELLS, body.cell_id)
    command = AcquireActivity(host, body.activity_id, body.kind, body.cell_id, body.expires_at)
    return await call.execute(command)


@router.post(
    "/activities/releases",
    **_command(
        "ReleaseActivity",
        "End an activity",
        Answer("Whether there was one.", model=models_hosts.Released, example={"released": True}),
        models_hosts.ReleaseForm,
        (refusals.InvalidActivityId,),
    ),
)
async def release_activity(
    request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_host(access.HOSTS_AND_CELLS, host)
    body = await call.body(models_hosts.RELEASE)
    await call.require_cell_of_lease(access.HOSTS_AND_CELLS, host, body.activity_id)
    return await call.execute(
        ReleaseActivity(host, body.activity_id), lambda answer: {"released": answer}
    )


@router.post(
    "/activities/renewals",
    **_command(
        "RenewControl",
        "Extend a control's lease, never shorten it",
        DONE,
        models_hosts.RenewForm,
        (
            refusals.InvalidActivityId,
            refusals.InvalidActivityExpiry,
            refusals.AssignmentNotFound,
            refusals.ControlActivityNotFound,
            refusals.ActivityCellNotAuthoritative,
            refusals.ControlActivityMoved,
        ),
    ),
)
async def renew_control(
    request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_host(access.HOSTS_AND_CELLS, host)
    body = await call.body(models_hosts.RENEW)
    call.caller.require_cell(access.HOSTS_AND_CELLS, body.cell_id)
    command = RenewControl(host, body.activity_id, body.cell_id, body.expires_at)
    return await call.execute(command)


@router.post(
    "/controls",
    **_command(
        "ActivateControl",
        "Make the host's control of one generation live",
        Answer(
            "The control's activity id.",
            model=models_hosts.Activated,
            example={"activity_id": "control:c-1:3"},
        ),
        models_hosts.ControlForm,
        (
            refusals.InvalidActivityId,
            refusals.WrongAssignment,
            refusals.ActivityLeaseShapeMismatch,
            refusals.RelayCapacityExhausted,
        ),
    ),
)
async def activate_control(
    request: Request, user_id: UserIdPath, relay_host_id: RelayHostIdPath
) -> Response:
    call, host = await Call.of(request), HostId(user_id, relay_host_id)
    call.caller.require_host(access.HOSTS_AND_CELLS, host)
    body = await call.body(models_hosts.CONTROL)
    call.caller.require_cell(access.HOSTS_AND_CELLS, body.cell_id)
    command = ActivateControl(
        host,
        body.cell_id,
        body.epoch,
        body.generation,
        body.idle_regional_rehome,
        body.cell_incarnation,
        body.inclusion_watermark,
    )
    return await call.execute(command, lambda answer: {"activity_id": answer})
