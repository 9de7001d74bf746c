"""Comparing live rows with what the fold of the log makes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from projections.table import Projection, Rows, Table


@dataclass(frozen=True, slots=True)
class Difference:
    """How many rows of a table differ, and the first one in key order. None: no such row."""

    table: str
    count: int
    key: tuple[Any, ...]
    live: Mapping[str, Any] | None
    folded: Mapping[str, Any] | None

    def __str__(self) -> str:
        key = ", ".join(str(part) for part in self.key)
        return (
            f"{self.table}: {self.count} rows differ, first ({key}): "
            f"live {_told(self.live)}, folded from the log {_told(self.folded)}"
        )


@dataclass(frozen=True, slots=True)
class Verified:
    """Live tables against the log up to `position`."""

    position: int
    projections: tuple[str, ...]
    rows: int
    """How many rows the fold has."""
    differences: tuple[Difference, ...]


class State:
    """All rows of some projections in memory, kept up to date from changes."""

    def __init__(self, projections: Iterable[Projection]) -> None:
        self.tables: dict[Table, dict[tuple[Any, ...], list[Any]]] = {
            table: {} for it in projections for table in it.tables
        }

    def take(self, rows: Rows) -> None:
        """Apply the changes. Raises `KeyError` when a fold changes a row that is not there."""
        for table, changes in rows.changes.items():
            known = self.tables[table]
            for key, change in changes.items():
                if change is None:
                    known.pop(key, None)
                elif isinstance(change, list):
                    known[key] = change
                else:
                    row = known[key]
                    for name, value in change.items():
                        row[table.index[name]] = value

    def ordered(self, table: Table) -> list[list[Any]]:
        """The table's rows by key; texts order by code point, as in PostgreSQL's "C"."""
        return [row for _, row in sorted(self.tables[table].items())]


def _told(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "has no such row"
    return "(" + ", ".join(f"{name}={value!r}" for name, value in row.items()) + ")"
