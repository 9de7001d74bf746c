"""Tables of derived rows, and the changes that a fold makes to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from domain.events import Event

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table's name and its columns with their SQL types, the key columns first."""

    name: str
    key_length: int
    columns: Mapping[str, str]
    index: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {name: i for i, name in enumerate(self.columns)})

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.columns)[: self.key_length]


class Rows:
    """Changes to rows, merged by key: a whole row, some columns of a row, or none any more."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes: dict[Table, dict[Key, Row | dict[str, Any] | None]] = {}

    def put(self, table: Table, *row: Any) -> None:
        """Write a whole row, new or not."""
        changes = self.changes.get(table)
        if changes is None:
            changes = self.changes[table] = {}
        changes[row[: table.key_length]] = list(row)

    def set(self, table: Table, key: Key, **columns: Any) -> None:
        """Change some columns of a row that exists."""
        changes = self.changes.setdefault(table, {})
        known = changes.get(key)
        if isinstance(known, list):
            for name, value in columns.items():
                known[table.index[name]] = value
        else:
            changes[key] = {**(known or {}), **columns}

    def drop(self, table: Table, *key: Any) -> None:
        """Remove a row, if it exists."""
        self.changes.setdefault(table, {})[key] = None


Fold: TypeAlias = Callable[[Any, int, int, Rows], None]
"""What one event does to rows: (event, stream version, position, rows)."""


@dataclass(frozen=True, slots=True)
class Projection:
    """A read model: its name, the version of its fold, its tables, its folds by event type."""

    name: str
    version: int
    tables: tuple[Table, ...]
    folds: Mapping[type[Event], Fold]
