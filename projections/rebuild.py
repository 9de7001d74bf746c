"""Rebuilding read models beside the live ones: names, what may be resumed, how far it is."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from domain.events import Event
from projections.table import Projection, Rows, Table

REBUILT_PREFIX = "rebuild_"
PREVIOUS_PREFIX = "previous_"

Role: TypeAlias = Literal["live", "rebuilt", "previous"]
"""Which of a projection's tables: in use, being made beside them, or replaced and kept."""
Phase: TypeAlias = Literal["folding", "comparing", "switching", "done"]


class RebuildRefused(Exception):
    """The rebuild ended without switching; the live tables are as they were."""


class Kept(NamedTuple):
    """What is known of one of a projection's sets of tables."""

    name: str
    role: Role
    version: int
    """Of the fold that wrote them."""
    code: str
    """The fingerprint of the fold's code; empty for tables that were never rebuilt."""
    position: int
    """Rebuilt: folded up to here. Live: switched in here. Previous: replaced here."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pass over the log is."""

    phase: Phase
    position: int
    target: int
    events_per_second: float

    @property
    def seconds_left(self) -> float | None:
        """Until the target at the present rate; None when there is no rate yet."""
        if self.events_per_second <= 0:
            return None
        return max(0, self.target - self.position) / self.events_per_second


Tell: TypeAlias = Callable[[Progress], None]


def tell_nobody(_: Progress) -> None:
    """For callers that don't want to know."""


class Meter:
    """Measures a pass. `seconds` is any clock that goes forward."""

    def __init__(self, start: int, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._start = start
        self._started = seconds()

    def progress(self, phase: Phase, position: int, target: int) -> Progress:
        """The progress now, at the mean rate so far."""
        elapsed = self._seconds() - self._started
        rate = (position - self._start) / elapsed if elapsed > 0 else 0.0
        return Progress(phase, position, target, rate)


def code_of(projection: Projection) -> str:
    """A fingerprint of the code that folds: a rebuild begun by other code is begun anew."""
    modules = {fold.__module__ for fold in projection.folds.values()}
    for event in projection.folds:
        modules |= {it.__module__ for it in event.__mro__ if issubclass(it, Event)}
    return _fingerprint(frozenset(modules))


@cache
def _fingerprint(modules: frozenset[str]) -> str:
    sources = [inspect.getsource(sys.modules[name]) for name in sorted(modules)]
    return hashlib.sha256("".join(sources).encode()).hexdigest()[:16]


def resume_position(projections: Sequence[Projection], kept: Iterable[Kept]) -> int | None:
    """Where a rebuild of exactly these goes on; None if it has to begin at the beginning.

    All must stand at one position, since they are folded in one pass.
    """
    begun = {it.name: it for it in kept if it.role == "rebuilt"}
    positions = set()
    for projection in projections:
        known = begun.get(projection.name)
        if known is None or known[2:4] != (projection.version, code_of(projection)):
            return None
        positions.add(known.position)
    return positions.pop() if len(positions) == 1 else None


def tables_of(projections: Iterable[Projection]) -> list[Table]:
    """The tables of these projections."""
    return [table for it in projections for table in it.tables]


@cache
def named(table: Table, prefix: str) -> Table:
    """The same table under a prefixed name."""
    return Table(prefix + table.name, table.key_length, table.columns)


def redirected(rows: Rows, prefix: str) -> Rows:
    """The same changes for the tables of the prefix."""
    elsewhere = Rows()
    elsewhere.changes = {named(table, prefix): it for table, it in rows.changes.items()}
    return elsewhere
