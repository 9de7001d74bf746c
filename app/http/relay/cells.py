"""Cells: the inventory, admission, what they report, what they hold."""

from adapters.streams import cell_stream
from app.http.access import ANYONE, OPERATOR, READERS
from app.http.declaration import GET, POST, PUT, Answer, Body, Endpoint, NoParameters
from app.http.operation import IfMatch, Operation
from app.http.query import Asked, AtPosition, Query, answered
from app.http.relay import cell_forms
from app.http.relay.cell_answers import CATALOG, FLEET, RENEWED, STATUS, Fleet, Regions, row_of
from app.http.relay.paths import CellPath, own_cell
from app.http.reply import Reply
from domain import refusals
from domain.relay import views
from domain.relay.heartbeat import RecordRehomeStatus
from domain.relay.inventory import ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.renewals import RenewControls, Renewed
from domain.relay.views import DeploymentStatus

RECONCILE_CELLS = Operation(
    "ReconcileCells",
    PUT,
    "/v1/cells",
    tag="cells",
    summary="Bring the inventory up to a configuration, keeping what operators decided",
    path=NoParameters,
    body=Body(
        cell_forms.InventoryForm, bytes_max=lambda settings: settings.inventory_body_bytes_max
    ),
    roles=OPERATOR,
    command=lambda _, form: ReconcileCells(
        tuple(it.settings(it.cell_id, initially_enabled=it.initially_enabled) for it in form.cells),
        form.disable_missing,
    ),
    refusals=(refusals.CellUrlTaken,),
)

CONFIGURE_CELL = Operation(
    "ConfigureCell",
    PUT,
    "/v1/cells/{cell_id}",
    tag="cells",
    summary="Set all of a cell, its admission too",
    path=CellPath,
    body=Body(cell_forms.ConfigurationForm),
    roles=OPERATOR,
    if_match=IfMatch(
        lambda path: cell_stream(path.cell_id),
        "Configure only this version of the cell; * is any, but there must be one.",
    ),
    command=lambda path, form: ConfigureCell(form.settings(path.cell_id), form.admission),
    refusals=(refusals.CellCapacityBelowReserved, refusals.CellUrlTaken),
)

SET_CELL_ADMISSION = Operation(
    "SetCellAdmission",
    PUT,
    "/v1/cells/{cell_id}/admission",
    tag="cells",
    summary="Open or close a cell",
    path=CellPath,
    body=Body[cell_forms.AdmissionForm | cell_forms.EnabledForm](
        cell_forms.AdmissionForm, cell_forms.EnabledForm
    ),
    roles=OPERATOR,
    command=lambda path, form: SetCellAdmission(path.cell_id, form.admission),
    refusals=(refusals.CellNotFound,),
)

RECORD_HEARTBEAT = Operation(
    "RecordHeartbeat",
    POST,
    "/v1/cells/{cell_id}/heartbeats",
    tag="cells",
    summary="A cell says that it runs",
    path=CellPath,
    body=Body(cell_forms.HeartbeatForm),
    roles={**OPERATOR, "cell": own_cell},
    command=lambda path, form: form.command(path.cell_id),
    refusals=(
        refusals.CellNotFound,
        refusals.CellOriginMismatch,
        refusals.CellRegionMismatch,
        refusals.StaleCellIncarnation,
        refusals.CellConnectionTelemetryMismatch,
        refusals.CellConnectionLimitNotConfigured,
        refusals.StaleConnectionSnapshot,
    ),
)

RECORD_REHOME_STATUS = Operation(
    "RecordRehomeStatus",
    POST,
    "/v1/cells/{cell_id}/rehome-status",
    tag="cells",
    summary="A cell says which rehome protocol it speaks and how healthy it is",
    path=CellPath,
    body=Body(cell_forms.RehomeStatusForm),
    roles={**OPERATOR, "cell": own_cell},
    command=lambda path, form: RecordRehomeStatus(path.cell_id, **form.model_dump()),
    refusals=(refusals.StaleCellIncarnation,),
)

RENEW_CONTROLS = Operation(
    "RenewControls",
    POST,
    "/v1/cells/{cell_id}/renewals",
    tag="cells",
    summary="Extend many controls of a cell, each judged by itself",
    path=CellPath,
    body=Body(cell_forms.RenewalsForm, bytes_max=lambda settings: settings.renewals_body_bytes_max),
    roles={**OPERATOR, "cell": own_cell},
    command=lambda path, form: RenewControls(
        path.cell_id, tuple(item.renewal() for item in form.items)
    ),
    answer=Answer("What was renewed.", model=Renewed, example=RENEWED),
)


async def list_cells(asked: Asked[NoParameters, AtPosition, None]) -> Reply:
    service = asked.service
    found, now = await service.reads.views(), service.clock.now_ms()
    rows = [row_of(it, now, service.policy) for it in found.value]
    return answered(Fleet(rows), found.position)


LIST_CELLS = Query(
    "ListCells",
    GET,
    "/v1/cells",
    tag="cells",
    summary="All cells: settings, load, headroom, admission, liveness",
    query=AtPosition,
    roles=READERS,
    ask=list_cells,
    answer=Answer("By id.", model=Fleet, example=FLEET, headers=("Log-Position",)),
)


async def cell_deployment_status(asked: Asked[CellPath, AtPosition, None]) -> Reply:
    service, cell_id = asked.service, asked.path.cell_id
    found = await service.reads.cell(cell_id)
    if found.value is None:
        raise refusals.CellNotFound(cell_id=cell_id)
    cell, use = found.value
    status = views.deployment_status(cell.view, use, service.clock.now_ms(), service.policy)
    return answered(status, found.position, [("etag", f'"{cell.version}"')])


CELL_DEPLOYMENT_STATUS = Query(
    "CellDeploymentStatus",
    GET,
    "/v1/cells/{cell_id}",
    tag="cells",
    summary="All an operator needs to know before restarting a cell",
    path=CellPath,
    query=AtPosition,
    roles={**READERS, "cell": own_cell},
    ask=cell_deployment_status,
    answer=Answer(
        "The cell.", model=DeploymentStatus, example=STATUS, headers=("Log-Position", "ETag")
    ),
    refusals=(refusals.CellNotFound,),
)


async def region_catalog(asked: Asked[NoParameters, AtPosition, None]) -> Reply:
    service = asked.service
    found, now = await service.reads.views(), service.clock.now_ms()
    regions = views.region_catalog((it.view for it in found.value), now, service.policy)
    return answered({"regions": regions}, found.position)


REGION_CATALOG = Query(
    "RegionCatalog",
    GET,
    "/v1/regions",
    tag="cells",
    summary="Where a host may measure its distance to each region; needs no token",
    query=AtPosition,
    roles=ANYONE,
    ask=region_catalog,
    answer=Answer("By region.", model=Regions, example=CATALOG, headers=("Log-Position",)),
)

OPERATIONS: tuple[Endpoint, ...] = (
    RECONCILE_CELLS,
    CONFIGURE_CELL,
    SET_CELL_ADMISSION,
    RECORD_HEARTBEAT,
    RECORD_REHOME_STATUS,
    RENEW_CONTROLS,
    LIST_CELLS,
    CELL_DEPLOYMENT_STATUS,
    REGION_CATALOG,
)
