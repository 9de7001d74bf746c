"""Cells: the inventory, admission, what they report, what they hold."""

import re
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from adapters.streams import cell_stream
from app.http import access, models_cells, problems
from app.http.answers_cells import CATALOG, FLEET, RENEWED, STATUS, Fleet, Regions, row_of
from app.http.commands import Call, service_of
from app.http.document import DONE, Answer, Described, operation
from app.http.models import CellIdPath
from app.http.questions import MinPosition, WaitMs, answered, reached
from app.outcome import VersionMismatch
from app.scribe import Condition
from domain import refusals
from domain.relay import views
from domain.relay.heartbeat import RecordRehomeStatus
from domain.relay.inventory import ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.renewals import RenewControls, Renewed
from domain.relay.views import DeploymentStatus

router = APIRouter(prefix="/v1")

ETAG = re.compile(r'"(\d{1,19})"')


def _command(
    name: str, summary: str, refused: tuple[Any, ...], *forms: Any, **more: Any
) -> dict[str, Any]:
    answers, roles = more.pop("answers", (DONE,)), more.pop("roles", access.OPERATOR)
    return operation(
        Described(name, summary, "cells", answers, roles, forms, refused, command=True, **more)
    )


@router.put(
    "/cells",
    **_command(
        "ReconcileCells",
        "Bring the inventory up to a configuration, keeping what operators decided",
        (refusals.CellUrlTaken,),
        models_cells.InventoryForm,
    ),
)
async def reconcile_cells(request: Request) -> Response:
    call = await Call.of(request)
    call.caller.require_role(access.OPERATOR)
    bytes_max = call.service.settings.inventory_body_bytes_max
    body = await call.body(models_cells.INVENTORY, bytes_max)
    cells = tuple(
        it.settings(it.cell_id, initially_enabled=it.initially_enabled) for it in body.cells
    )
    return await call.execute(ReconcileCells(cells, body.disable_missing))


IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "Configure only this version of the cell; * is any, but there must be one.",
    "schema": {"type": "string", "pattern": r'^(\*|"[0-9]{1,18}"(, *"[0-9]{1,18}")*)$'},
    "example": '"3"',
}


@router.put(
    "/cells/{cell_id}",
    **_command(
        "ConfigureCell",
        "Set all of a cell, its admission too",
        (
            refusals.CellCapacityBelowReserved,
            refusals.CellUrlTaken,
            problems.BadIfMatch,
            VersionMismatch,
        ),
        models_cells.ConfigurationForm,
        headers=(IF_MATCH,),
    ),
)
async def configure_cell(request: Request, cell_id: CellIdPath) -> Response:
    call = await Call.of(request)
    call.caller.require_role(access.OPERATOR)
    wanted = _wanted_versions(request.headers.get("if-match"))
    body = await call.body(models_cells.CONFIGURATION)
    condition = None if wanted is None else Condition(cell_stream(cell_id), wanted)
    command = ConfigureCell(body.settings(cell_id), body.admission)
    return await call.execute(command, condition=condition)


def _wanted_versions(if_match: str | None) -> tuple[int, ...] | None:
    """The versions in If-Match; none listed means any. Refuses `bad_if_match`."""
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return ()
    tags = [ETAG.fullmatch(part.strip()) for part in if_match.split(",")]
    if not all(tags):
        raise problems.BadIfMatch
    return tuple(int(tag[1]) for tag in tags if tag)


@router.put(
    "/cells/{cell_id}/admission",
    **_command(
        "SetCellAdmission",
        "Open or close a cell",
        (refusals.CellNotFound,),
        models_cells.AdmissionForm,
        models_cells.EnabledForm,
    ),
)
async def set_cell_admission(request: Request, cell_id: CellIdPath) -> Response:
    call = await Call.of(request)
    call.caller.require_role(access.OPERATOR)
    body = await call.body(models_cells.ADMISSION)
    return await call.execute(SetCellAdmission(cell_id, body.admission))


@router.post(
    "/cells/{cell_id}/heartbeats",
    **_command(
        "RecordHeartbeat",
        "A cell says that it runs",
        (
            refusals.CellNotFound,
            refusals.CellOriginMismatch,
            refusals.CellRegionMismatch,
            refusals.StaleCellIncarnation,
            refusals.CellConnectionTelemetryMismatch,
            refusals.CellConnectionLimitNotConfigured,
            refusals.StaleConnectionSnapshot,
        ),
        models_cells.HeartbeatForm,
        roles=access.CELLS,
    ),
)
async def record_heartbeat(request: Request, cell_id: CellIdPath) -> Response:
    call = await Call.of(request)
    call.caller.require_cell(access.CELLS, cell_id)
    body = await call.body(models_cells.HEARTBEAT)
    return await call.execute(body.command(cell_id))


@router.post(
    "/cells/{cell_id}/rehome-status",
    **_command(
        "RecordRehomeStatus",
        "A cell says which rehome protocol it speaks and how healthy it is",
        (refusals.StaleCellIncarnation,),
        models_cells.RehomeStatusForm,
        roles=access.CELLS,
    ),
)
async def record_rehome_status(request: Request, cell_id: CellIdPath) -> Response:
    call = await Call.of(request)
    call.caller.require_cell(access.CELLS, cell_id)
    body = await call.body(models_cells.REHOME_STATUS)
    return await call.execute(RecordRehomeStatus(cell_id, **body.model_dump()))


@router.post(
    "/cells/{cell_id}/renewals",
    **_command(
        "RenewControls",
        "Extend many controls of a cell, each judged by itself",
        (),
        models_cells.RenewalsForm,
        roles=access.CELLS,
        answers=(Answer("What was renewed.", model=Renewed, example=RENEWED),),
    ),
)
async def renew_controls(request: Request, cell_id: CellIdPath) -> Response:
    call = await Call.of(request)
    call.caller.require_cell(access.CELLS, cell_id)
    bytes_max = call.service.settings.renewals_body_bytes_max
    body = await call.body(models_cells.RENEWALS, bytes_max)
    items = tuple(item.renewal() for item in body.items)
    return await call.execute(RenewControls(cell_id, items))


@router.get(
    "/cells",
    **operation(
        Described(
            "ListCells",
            "All cells: settings, load, headroom, admission, liveness",
            "cells",
            (Answer("By id.", model=Fleet, example=FLEET, headers=("Log-Position",)),),
            access.READERS,
            refusals=(problems.PositionNotReached,),
        )
    ),
)
async def list_cells(
    request: Request, min_position: MinPosition = None, wait_ms: WaitMs = 0
) -> Response:
    service = service_of(request)
    (await access.identify(request, service)).require_role(access.READERS)
    await reached(service, min_position, wait_ms)
    found, now = await service.reads.views(), service.clock.now_ms()
    rows = [row_of(it, now, service.policy) for it in found.value]
    return answered({"cells": rows}, found.position)


@router.get(
    "/cells/{cell_id}",
    **operation(
        Described(
            "CellDeploymentStatus",
            "All an operator needs to know before restarting a cell",
            "cells",
            (
                Answer(
                    "The cell.",
                    model=DeploymentStatus,
                    example=STATUS,
                    headers=("Log-Position", "ETag"),
                ),
            ),
            access.CELL_READERS,
            refusals=(refusals.CellNotFound, problems.PositionNotReached),
        )
    ),
)
async def cell_deployment_status(
    request: Request, cell_id: CellIdPath, min_position: MinPosition = None, wait_ms: WaitMs = 0
) -> Response:
    service = service_of(request)
    (await access.identify(request, service)).require_cell(access.CELL_READERS, cell_id)
    await reached(service, min_position, wait_ms)
    found = await service.reads.cell(cell_id)
    if found.value is None:
        raise refusals.CellNotFound(cell_id=cell_id)
    cell, use = found.value
    status = views.deployment_status(cell.view, use, service.clock.now_ms(), service.policy)
    return answered(status, found.position, {"ETag": f'"{cell.version}"'})


@router.get(
    "/regions",
    **operation(
        Described(
            "RegionCatalog",
            "Where a host may measure its distance to each region; needs no token",
            "cells",
            (Answer("By region.", model=Regions, example=CATALOG, headers=("Log-Position",)),),
            refusals=(problems.PositionNotReached, problems.LogUnavailable),
        )
    ),
)
async def region_catalog(
    request: Request, min_position: MinPosition = None, wait_ms: WaitMs = 0
) -> Response:
    service = service_of(request)
    await reached(service, min_position, wait_ms)
    found, now = await service.reads.views(), service.clock.now_ms()
    regions = views.region_catalog((it.view for it in found.value), now, service.policy)
    return answered({"regions": regions}, found.position)
