"""All read models, and the one fold that serves writing, catching up and rebuilding."""

from collections.abc import Iterable

from domain.events import Event
from projections.relay import assignments, cells, connections, leases, reservations
from projections.table import Fold, Projection, Rows, Table

PROJECTIONS: tuple[Projection, ...] = (
    cells.PROJECTION,
    reservations.PROJECTION,
    assignments.PROJECTION,
    leases.PROJECTION,
    connections.PROJECTION,
)
BY_NAME = {projection.name: projection for projection in PROJECTIONS}
TABLES: tuple[Table, ...] = tuple(table for it in PROJECTIONS for table in it.tables)


class Folder:
    """The folds of some projections, ready by event type."""

    def __init__(self, projections: Iterable[Projection] = PROJECTIONS) -> None:
        self._folds: dict[type[Event], list[Fold]] = {}
        for projection in projections:
            for event_type, fold in projection.folds.items():
                self._folds.setdefault(event_type, []).append(fold)

    def fold(self, event: Event, version: int, position: int, rows: Rows) -> None:
        """Write what the event at this stream version and log position does to the rows."""
        for fold in self._folds.get(type(event), ()):
            fold(event, version, position, rows)
