"""Rebuilding projections beside the running service, and switching to what was verified.

Folding and comparing take no lock that a writer waits for. Only the end does: the writer lock, a
last catch-up of a few events, a look at the rows they touched, the renaming. Writers that waited
find that a turn was taken and read everything anew.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.errors import LockNotAvailable

from adapters.mapper import EventMapper
from adapters.postgres import compare, kept, shadows, statements
from adapters.postgres.deadlines import fill_deadlines
from adapters.postgres.folding import (
    OPTIONS,
    PAGE_EVENTS,
    Page,
    Pass,
    head,
    uncollected,
    write_rows,
)
from adapters.postgres.store import connect
from projections.rebuild import (
    PREVIOUS_PREFIX,
    REBUILT_PREFIX,
    Meter,
    Phase,
    RebuildRefused,
    Tell,
    resume_position,
    tables_of,
    tell_nobody,
)
from projections.table import Key, Projection, Table
from projections.verify import Difference

REBUILD_LOCK = 0x72656275696C64  # "rebuild": one at a time in a database
LAST_EVENTS_MAX = 2_000
"""How many events may be left to fold while writers wait."""
TABLE_LOCK_TIMEOUTS_MS = (200, 400, 800, 1_600)
"""Of one attempt after another, the last again and again, while writers wait.

The first are below PostgreSQL's `deadlock_timeout`, so that a reader in our way is waited out and
never cancelled; the last is above it, for that is when an autovacuum in our way gives up.
"""
SWITCH_ATTEMPTS_MAX = 40


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A finished rebuild: switched in at `position`."""

    projections: tuple[str, ...]
    resumed_at: int
    position: int
    events_per_second: float
    differences: tuple[Difference, ...]
    """Accepted differences from the tables before; empty when they were equal or not compared."""
    compared: bool
    """False when the tables before were written by another version of the fold."""


class Rebuild:
    """One rebuild of some projections, folded together. Run it once."""

    def __init__(
        self,
        dsn: str,
        projections: Sequence[Projection],
        *,
        accept_differences: bool = False,
        tell: Tell = tell_nobody,
        seconds: Callable[[], float] = time.monotonic,
        page_events: int = PAGE_EVENTS,
    ) -> None:
        self._dsn = dsn
        self._projections = projections
        self._tables = tables_of(projections)
        self._accept_differences = accept_differences
        self._tell = tell
        self._seconds = seconds
        self._page_events = page_events
        self._touched: dict[Table, set[Key]] | None = None
        """Keys changed since the comparison, once there was one."""

    def run(self) -> Rebuilt:
        """Rebuild and switch. Raises `RebuildRefused`, `UnreadableEvent`.

        A rebuild that ends before it switched goes on where it was when it is run again.
        """
        over = Pass(self._dsn, self._projections, EventMapper(), self._page_events)
        try:
            with uncollected(), connect(self._dsn, OPTIONS) as connection:
                self._connection = connection
                self._begin()
                self._catch_up(over)
                shadows.analyze(connection, self._tables, REBUILT_PREFIX)
                rate = self._rate()
                found = self._compare(over)
                self._catch_up(over)
                self._switch(over)
        finally:
            over.close()
        self._show("done", self._position)
        names = tuple(it.name for it in self._projections)
        compared = len(self._comparable) == len(self._tables)
        return Rebuilt(names, self._resumed_at, self._position, rate, tuple(found), compared)

    def _begin(self) -> None:
        """Take the rebuild lock; go on with tables begun earlier, or begin new ones."""
        connection = self._connection
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", [REBUILD_LOCK]).fetchone()
        if row is None or not row[0]:
            raise RebuildRefused("another rebuild is running on this database")
        with connection.transaction():
            known = kept.read(connection)
            position = resume_position(self._projections, known)
            if position is None:
                position = 0
                shadows.drop(connection, self._tables, REBUILT_PREFIX)
                shadows.create(connection, self._tables, REBUILT_PREFIX)
                kept.note(connection, self._projections, "rebuilt", position)
        same = [it for it in self._projections if kept.live_version(known, it.name) == it.version]
        self._comparable = tables_of(same)
        self._resumed_at = self._position = position
        self._meter = Meter(position, self._seconds)

    def _catch_up(self, over: Pass) -> None:
        """Fold until only a few events are left, however many are written meanwhile."""
        while (target := over.head()) - self._position > LAST_EVENTS_MAX or not self._position:
            if target == 0:
                return
            for position in over.run(self._position, target, self._write):
                self._position = position
                self._show("folding", target)

    def _write(self, page: Page) -> None:
        with self._connection.transaction():
            self._put(page)

    def _put(self, page: Page) -> None:
        write_rows(self._connection, page.rows, REBUILT_PREFIX)
        kept.note(self._connection, self._projections, "rebuilt", page.position)
        if self._touched is not None:
            for table, changes in page.rows.changes.items():
                self._touched.setdefault(table, set()).update(changes)

    def _compare(self, over: Pass) -> list[Difference]:
        """Compare all rows at one position, seen in one snapshot, while writers write on."""
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            target = head(self._connection)
            self._show("comparing", target)
            for position in over.run(self._position, target, self._put):
                self._position = position
            found = compare.differences(self._connection, self._comparable, REBUILT_PREFIX)
            self._refuse(found)
        self._touched = {}
        return found

    def _switch(self, over: Pass) -> None:
        """Under the writer lock: catch up, look at what that touched, rename."""
        for attempt in range(SWITCH_ATTEMPTS_MAX):
            self._show("switching", over.head())
            timeout_ms = TABLE_LOCK_TIMEOUTS_MS[min(attempt, len(TABLE_LOCK_TIMEOUTS_MS) - 1)]
            try:
                with self._connection.transaction():
                    self._switch_locked(over, self._connection, timeout_ms)
            except LockNotAvailable:
                # Somebody reads for long. Let the writers have their turn, then try again.
                self._catch_up(over)
                continue
            return
        raise RebuildRefused("the live tables are in use all the time; nothing was switched")

    def _switch_locked(
        self, over: Pass, connection: psycopg.Connection[Any], timeout_ms: int
    ) -> None:
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute(statements.LOCK)
        connection.execute(statements.TAKE_TURN)
        target, touched = head(connection), self._touched or {}
        self._touched = {table: set(keys) for table, keys in touched.items()}
        if target > self._position:
            self._put(over.fold(connection, self._position, target))
        wanted = {table: self._touched.get(table, set()) for table in self._comparable}
        self._refuse(compare.differences_at(connection, wanted, REBUILT_PREFIX))
        connection.execute(f"SET LOCAL lock_timeout = {timeout_ms}".encode())
        shadows.lock(connection, self._tables)
        shadows.drop(connection, self._tables, PREVIOUS_PREFIX)
        shadows.switch(connection, self._tables)
        row = connection.execute(statements.CLOCK).fetchone()
        assert row is not None
        fill_deadlines(connection, row[0] // 1_000)
        kept.switched(connection, self._projections, target)
        self._position = target

    def _refuse(self, found: list[Difference]) -> None:
        if found and not self._accept_differences:
            told = "; ".join(str(it) for it in found)
            raise RebuildRefused(f"the live tables differ from the log and were left: {told}")

    def _show(self, phase: Phase, target: int) -> None:
        self._tell(self._meter.progress(phase, self._position, target))

    def _rate(self) -> float:
        return self._meter.progress("folding", self._position, self._position).events_per_second


def drop_previous(dsn: str, projections: Sequence[Projection]) -> list[str]:
    """Remove the tables that rebuilds replaced; answers of which projections there were any."""
    with connect(dsn) as connection, connection.transaction():
        names = [it.name for it in projections]
        found = [it.name for it in kept.read(connection) if it.role == "previous"]
        shadows.drop(connection, tables_of(projections), PREVIOUS_PREFIX)
        kept.forget(connection, names, "previous")
        return [name for name in found if name in names]
