"""One pass over the log: Python folds a page while PostgreSQL writes the one before.

Pages are not read ahead by a thread: a result of many megabytes comes in a thousand pieces, and for
each the thread would wait for the interpreter lock that folding holds.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from adapters.mapper import EventMapper, UnreadableEvent
from adapters.postgres.rows import statements as row_statements
from adapters.postgres.store import connect
from adapters.reading import FOLDING_VIEWS, EventReader
from projections.catalogue import Folder
from projections.rebuild import redirected
from projections.table import Projection, Rows

PAGE_EVENTS = 25_000
OPTIONS = "-c jit=off -c enable_hashjoin=off -c enable_mergejoin=off -c synchronous_commit=off"
"""Pages look up keys in tables that grow from nothing: plans must not stay scans.

A page that a crash loses is folded again: its progress is lost with it. The switch is synchronous.
"""

Connection = psycopg.Connection[Any]

HEAD = "SELECT coalesce(max(position), 0) FROM log"
_PAGE = """
SELECT position, version, topic, state FROM log
WHERE position > %s AND position <= %s ORDER BY position LIMIT %s
"""
_STREAM = "SELECT stream FROM log WHERE position = %s"


@dataclass(frozen=True, slots=True)
class Page:
    """What the events up to `position` do to rows."""

    position: int
    rows: Rows


class Pass:
    """Folds the log for some projections, over a connection of its own for reading."""

    def __init__(
        self,
        dsn: str,
        projections: Sequence[Projection],
        mapper: EventMapper,
        page_events: int = PAGE_EVENTS,
    ) -> None:
        self._folder = Folder([_with_views(it) for it in projections])
        self._events = EventReader(mapper, FOLDING_VIEWS)
        self._page_events = page_events
        self._connection = connect(dsn, OPTIONS)
        self._writing = ThreadPoolExecutor(1, "rebuild-write")

    def close(self) -> None:
        self._writing.shutdown()
        self._connection.close()

    def head(self) -> int:
        """The position of the newest entry."""
        return head(self._connection)

    def run(self, after: int, until: int, write: Callable[[Page], None]) -> Iterator[int]:
        """Fold (after, until] and write it page by page; yields each position written.

        Raises `UnreadableEvent`; the pages before the unreadable event are written.
        """
        before: tuple[int, Future[None]] | None = None
        try:
            for page in self._pages(after, until):
                if before is not None:
                    before[1].result()
                    yield before[0]
                before = page.position, self._writing.submit(write, page)
        finally:
            if before is not None:
                before[1].result()
        if before is not None:
            yield before[0]

    def fold(self, connection: Connection, after: int, until: int) -> Page:
        """Fold (after, until] at once, read over `connection`: a few events under a lock."""
        limit = until - after
        return self._folded(connection.execute(_PAGE, [after, until, limit], binary=True), until)

    def _pages(self, after: int, until: int) -> Iterator[Page]:
        while entries := self._read(after, until):
            after = entries[-1][0]
            yield self._folded(entries, after)

    def _read(self, after: int, until: int) -> list[Any]:
        query = [after, until, self._page_events]
        return self._connection.execute(_PAGE, query, binary=True, prepare=True).fetchall()

    def _folded(self, entries: Any, position: int) -> Page:
        rows, read, fold = Rows(), self._events.read, self._folder.fold
        with uncollected():
            for at, version, topic, state in entries:
                try:
                    event = read(topic, state)
                except UnreadableEvent as error:
                    raise error.at(at, self._stream_at(at), version) from None
                fold(event, version, at, rows)
        return Page(position, rows)

    def _stream_at(self, position: int) -> str:
        row = self._connection.execute(_STREAM, [position]).fetchone()
        assert row is not None
        return str(row[0])


@contextmanager
def uncollected() -> Iterator[None]:
    """Folding makes many objects and no cycles: looking for cycles takes a third of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _with_views(projection: Projection) -> Projection:
    folds = projection.folds
    views = {view: folds[event] for event, view in FOLDING_VIEWS.items() if event in folds}
    return replace(projection, folds={**folds, **views})


def head(connection: Connection) -> int:
    """The position of the newest entry that the connection sees."""
    row = connection.execute(HEAD).fetchone()
    assert row is not None
    return int(row[0])


def write_rows(connection: Connection, rows: Rows, prefix: str) -> None:
    """Make the changes in the tables of the prefix."""
    for query, parameters in row_statements(redirected(rows, prefix)):
        connection.execute(query.encode(), parameters)
