"""The cells of the fleet: inventory at start, configuration, admission (contract 2.1-2.3)."""

from dataclasses import dataclass, replace

from domain.limits import DEFAULT_REGION, Region
from domain.refusals import CellCapacityBelowReserved, CellUrlTaken
from domain.relay.cell import (
    Admission,
    AdmissionSelectorOpened,
    Cell,
    CellAdmissionChanged,
    CellReconfigured,
    CellRegistered,
    admission_of,
)
from domain.relay.command import Command
from domain.relay.turn import Turn

# commands


@dataclass(frozen=True, slots=True)
class CellSettings:
    """A cell as configured. One of hard cap and unobserved bound alone counts as neither."""

    cell_id: str
    cell_url: str
    capacity_units: int
    region: Region = DEFAULT_REGION
    initially_enabled: bool = True
    hard_cap_connections: int | None = None
    unobserved_bound_connections: int | None = None

    @property
    def limits(self) -> tuple[int, int] | None:
        """The connection limit: hard cap and unobserved bound."""
        hard_cap, bound = self.hard_cap_connections, self.unobserved_bound_connections
        return None if hard_cap is None or bound is None else (hard_cap, bound)


@dataclass(frozen=True, slots=True)
class ReconcileCells(Command):
    """Bring the inventory up to a configuration, keeping what operators decided.

    Known cells keep URL and admission; missing ones are closed if `disable_missing`.
    Refuses `cell_url_taken`.
    """

    cells: tuple[CellSettings, ...]
    disable_missing: bool = True


@dataclass(frozen=True, slots=True)
class ConfigureCell(Command):
    """Set all of a cell, its admission too.

    Refuses `cell_capacity_below_reserved`, `cell_url_taken`.
    """

    cell: CellSettings
    admission: Admission


@dataclass(frozen=True, slots=True)
class SetCellAdmission(Command):
    """Open or close a cell. Refuses `cell_not_found`."""

    cell_id: str
    admission: Admission


# decide


def reconcile_cells(turn: Turn, command: ReconcileCells) -> None:
    for settings in sorted(command.cells, key=lambda it: it.cell_id):
        known = turn.cell(settings.cell_id)
        if known is None:
            _register(turn, settings, admission_of(settings.initially_enabled))
        else:
            _reconfigure(turn, known, replace(settings, cell_url=known.cell_url))
    if command.disable_missing:
        listed = {settings.cell_id for settings in command.cells}
        for cell in list(turn.cells().values()):
            if cell.cell_id not in listed and cell.admission != "existing-only":
                _admit(turn, cell, "existing-only", missing=True)
    _open_selector(turn)


def configure_cell(turn: Turn, command: ConfigureCell) -> None:
    settings = command.cell
    reserved_units = turn.load(settings.cell_id).reserved_units
    if reserved_units > settings.capacity_units:
        raise CellCapacityBelowReserved(
            cell_id=settings.cell_id,
            capacity_units=settings.capacity_units,
            reserved_units=reserved_units,
        )
    known = turn.cell(settings.cell_id)
    if known is None:
        _register(turn, settings, command.admission)
    else:
        _reconfigure(turn, known, settings)
        _admit(turn, turn.require_cell(settings.cell_id), command.admission)
    _open_selector(turn)


def set_cell_admission(turn: Turn, command: SetCellAdmission) -> None:
    _admit(turn, turn.require_cell(command.cell_id), command.admission)
    _open_selector(turn)


def _register(turn: Turn, settings: CellSettings, admission: Admission) -> None:
    _require_free_url(turn, settings)
    hard_cap, bound = settings.limits or (None, None)
    turn.record(
        CellRegistered(
            at=turn.now,
            cell_id=settings.cell_id,
            cell_url=settings.cell_url,
            region=settings.region,
            capacity_units=settings.capacity_units,
            hard_cap_connections=hard_cap,
            unobserved_bound_connections=bound,
            admission=admission,
        )
    )


def _reconfigure(turn: Turn, known: Cell, settings: CellSettings) -> None:
    _require_free_url(turn, settings)
    before = (known.hard_cap_connections, known.unobserved_bound_connections)
    limits = settings.limits or before
    after = replace(
        known,
        cell_url=settings.cell_url,
        region=settings.region,
        capacity_units=settings.capacity_units,
        hard_cap_connections=limits[0],
        unobserved_bound_connections=limits[1],
    )
    if after != known:
        turn.record(
            CellReconfigured(
                at=turn.now,
                cell_id=after.cell_id,
                cell_url=after.cell_url,
                region=after.region,
                capacity_units=after.capacity_units,
                hard_cap_connections=after.hard_cap_connections,
                unobserved_bound_connections=after.unobserved_bound_connections,
            )
        )
    if known.limited and limits != before:
        # What was reported under the old limit says nothing under the new one.
        runtime = turn.runtime(known.cell_id)
        turn.touch_runtime(known.cell_id, replace(runtime, telemetry=None))


def _require_free_url(turn: Turn, settings: CellSettings) -> None:
    for other in turn.cells().values():
        if other.cell_url == settings.cell_url and other.cell_id != settings.cell_id:
            raise CellUrlTaken(cell_id=settings.cell_id, taken_by=other.cell_id)


def _admit(turn: Turn, cell: Cell, admission: Admission, missing: bool = False) -> None:
    if cell.admission != admission:
        turn.record(
            CellAdmissionChanged(
                at=turn.now,
                cell_id=cell.cell_id,
                before=cell.admission,
                admission=admission,
                reason="missing_from_inventory" if missing else "operator",
            )
        )


def _open_selector(turn: Turn) -> None:
    if turn.selector_generation is None:
        turn.record(AdmissionSelectorOpened(at=turn.now))
