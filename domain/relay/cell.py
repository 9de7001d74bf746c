"""A relay cell: where it is, what it may hold, whom it admits, which incarnation runs.

Rules: contract sections 2.1-2.3 (admission) and 3 (inventory). What a cell *holds* is not here but
in `reservations`; what it last *reported* is volatile and in `runtime`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from domain.events import Event
from domain.limits import Region

# ids and words

Admission: TypeAlias = Literal["existing-only", "migration-only", "general"]


def admission_of(enabled: bool) -> Admission:
    """The admission that the older enabled flag stands for."""
    return "general" if enabled else "existing-only"


# events


class CellEvent(Event):
    cell_id: str


class CellRegistered(CellEvent):
    """A cell joined the inventory."""

    topic: ClassVar[str] = "cell.registered"

    cell_url: str
    region: Region
    capacity_units: int
    hard_cap_connections: int | None
    unobserved_bound_connections: int | None
    admission: Admission


class CellReconfigured(CellEvent):
    """An operator or the inventory changed a cell's settings; these are the new ones."""

    topic: ClassVar[str] = "cell.reconfigured"

    cell_url: str
    region: Region
    capacity_units: int
    hard_cap_connections: int | None
    unobserved_bound_connections: int | None


class CellAdmissionChanged(CellEvent):
    """A cell opened to or closed for hosts."""

    topic: ClassVar[str] = "cell.admission_changed"

    before: Admission
    admission: Admission
    reason: Literal["operator", "missing_from_inventory"]


class CellStarted(CellEvent):
    """A new incarnation of a cell sent its first heartbeat."""

    topic: ClassVar[str] = "cell.started"

    cell_incarnation: str
    started_at: int
    """The cell's own start, epoch ms; orders incarnations."""
    previous_incarnation: str | None


class AdmissionSelectorOpened(Event):
    """The admission selector began to follow the cells' admissions, at generation 0."""

    topic: ClassVar[str] = "admission_selector.opened"


# state


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as its events tell it."""

    cell_id: str
    cell_url: str
    region: Region
    capacity_units: int
    hard_cap_connections: int | None
    unobserved_bound_connections: int | None
    admission: Admission
    admission_changed_at: int
    cell_incarnation: str | None = None
    started_at: int | None = None

    @property
    def enabled(self) -> bool:
        """The older flag: whether the cell takes any host at all."""
        return self.admission != "existing-only"

    @property
    def limited(self) -> bool:
        """Whether the cell has a connection limit."""
        return self.hard_cap_connections is not None


# evolve


def _registered(_: Cell | None, event: CellRegistered) -> Cell:
    return Cell(
        cell_id=event.cell_id,
        cell_url=event.cell_url,
        region=event.region,
        capacity_units=event.capacity_units,
        hard_cap_connections=event.hard_cap_connections,
        unobserved_bound_connections=event.unobserved_bound_connections,
        admission=event.admission,
        admission_changed_at=event.at,
    )


def _reconfigured(cell: Cell | None, event: CellReconfigured) -> Cell:
    assert cell is not None
    return replace(
        cell,
        cell_url=event.cell_url,
        region=event.region,
        capacity_units=event.capacity_units,
        hard_cap_connections=event.hard_cap_connections,
        unobserved_bound_connections=event.unobserved_bound_connections,
    )


def _admission_changed(cell: Cell | None, event: CellAdmissionChanged) -> Cell:
    assert cell is not None
    return replace(cell, admission=event.admission, admission_changed_at=event.at)


def _started(cell: Cell | None, event: CellStarted) -> Cell:
    assert cell is not None
    return replace(cell, cell_incarnation=event.cell_incarnation, started_at=event.started_at)


_EVOLVE: dict[type[CellEvent], Callable[..., Cell]] = {
    CellRegistered: _registered,
    CellReconfigured: _reconfigured,
    CellAdmissionChanged: _admission_changed,
    CellStarted: _started,
}
CELL_EVENTS = tuple(_EVOLVE)


def evolve_cell(cell: Cell | None, event: CellEvent) -> Cell:
    """The cell after the event. Total over histories: never refuses."""
    return _EVOLVE[type(event)](cell, event)
