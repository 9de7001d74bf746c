"""The PostgreSQL store: the writer's own connection, and one for reading."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from adapters.entry import EMPTY_HEAD, Entry, Head
from adapters.ports import Batch, Result, Wanted
from adapters.postgres import statements
from adapters.postgres.commit import (
    PostgresCommit,
    PostgresLook,
    broken_connections_are_unavailable,
)
from adapters.postgres.transaction import ParsedRuntimes, PostgresTransaction
from domain.ids import HostId
from domain.relay.runtime import SILENT
from domain.relay.turn import Load
from domain.relay.views import CellUse, CellView, Place
from projections.catalogue import TABLES
from projections.relay import volatile
from projections.relay.cells import CELLS, cell_of
from projections.relay.reservations import CELL_RESERVATIONS

LOCK_WAIT_MS_MAX = 1_000
"""A turn that gets no lock so long is taken back; whoever has time left is decided anew."""
STATEMENT_TIMEOUT_MS = 10_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
CONNECT_SECONDS_MAX = 5

WRITER_OPTIONS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "lock_timeout": LOCK_WAIT_MS_MAX,
        "statement_timeout": STATEMENT_TIMEOUT_MS,
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_TIMEOUT_MS,
        # Every statement of the writer looks up keys: a plan made while the tables were small
        # must not stay a scan when they have grown.
        "enable_seqscan": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        "jit": "off",
    }.items()
)
_BY_NAME = {table.name: table for table in (*TABLES, *volatile.TABLES)}


class PostgresStore:
    """A log with its projections in a PostgreSQL database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._writer: psycopg.Connection[Any] | None = None
        self._loader: psycopg.Connection[Any] | None = None
        self._reader: psycopg.Connection[Any] | None = None
        self._parsed: ParsedRuntimes = {}

    # writing

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        with broken_connections_are_unavailable():
            connection = self._writing()
            turn = PostgresTransaction(connection, self._parsed)
            try:
                yield turn
            finally:
                if not turn.ended and not connection.closed:
                    connection.execute("ROLLBACK")

    def preload(self, wanted: Wanted) -> PostgresLook:
        with broken_connections_are_unavailable():
            return PostgresLook(self._loading(), wanted)

    def commit_ahead(self, batch: Batch, turn: int) -> PostgresCommit:
        with broken_connections_are_unavailable():
            return PostgresCommit(self._writing(), batch, turn)

    def committed(self, entry: Entry) -> bool:
        with self._locked() as connection:
            row = connection.execute(statements.CHAIN_AT, [entry.position]).fetchone()
        return row is not None and row[0] == entry.chain

    def stored(self, keys: Sequence[str]) -> dict[str, Result]:
        with self._locked() as connection:
            rows = connection.execute(statements.RESULTS, [list(keys)]).fetchall()
        return {row[0]: Result(*row) for row in rows}

    def reopen(self) -> None:
        with broken_connections_are_unavailable():
            self.close()
            self._writing()

    def close(self) -> None:
        for connection in (self._writer, self._loader, self._reader):
            if connection is not None:
                connection.close()
        self._writer = self._loader = self._reader = None

    # reading

    def head(self) -> Head:
        row = self._reading().execute(statements.LAST).fetchone()
        return EMPTY_HEAD if row is None else Head(row[0], row[6], row[5])

    def before_first(self) -> Entry | None:
        """An entry below position 1: forged before a constraint forbade it, or in spite of it."""
        row = self._reading().execute(statements.BEFORE_FIRST).fetchone()
        return None if row is None else Entry(*row)

    def read(self, after: int, limit: int) -> list[Entry]:
        rows = self._reading().execute(statements.AFTER, [after, limit], prepare=True).fetchall()
        return [Entry(*row) for row in rows]

    def place(self, host: HostId) -> Place | None:
        row = self._reading().execute(PLACE, list(host)).fetchone()
        return None if row is None else Place(*row)

    def views(self) -> list[CellView]:
        rows = self._reading().execute(VIEWS).fetchall()
        return [view_of(row) for row in rows]

    def use(self, cell_id: str) -> CellUse:
        row = self._reading().execute(USE, {"cell_id": cell_id}).fetchone()
        assert row is not None
        return CellUse(*row)

    def dump(self, table_name: str) -> list[tuple[Any, ...]]:
        table = _BY_NAME[table_name]
        columns = sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier(name))
            if kind == "jsonb"
            else sql.Identifier(name)
            for name, kind in table.columns.items()
        )
        key = sql.SQL(", ").join(sql.Identifier(name) for name in table.key)
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
            columns, sql.Identifier(table_name), key
        )
        return self._reading().execute(query).fetchall()

    # connections

    def _writing(self) -> psycopg.Connection[Any]:
        if self._writer is None:
            self._writer = connect(self._dsn, options=WRITER_OPTIONS)
        return self._writer

    def _loading(self) -> psycopg.Connection[Any]:
        if self._loader is None:
            self._loader = connect(self._dsn, options=WRITER_OPTIONS)
        return self._loader

    def _reading(self) -> psycopg.Connection[Any]:
        if self._reader is None or self._reader.closed:
            self._reader = connect(self._dsn)
        return self._reader

    @contextmanager
    def _locked(self) -> Iterator[psycopg.Connection[Any]]:
        with broken_connections_are_unavailable():
            connection = self._writing()
            with connection.transaction():
                connection.execute(statements.LOCK)
                # A turn that is still on its way to the server finds its number taken.
                connection.execute(statements.TAKE_TURN)
                yield connection


def connect(dsn: str, options: str = "") -> psycopg.Connection[Any]:
    """A connection that commits by itself and gives up on an unreachable server."""
    return psycopg.connect(
        dsn,
        autocommit=True,
        options=options,
        application_name="tenure",
        connect_timeout=CONNECT_SECONDS_MAX,
    )


def view_of(row: Any) -> CellView:
    """A row of `VIEWS`."""
    cells, loads = len(CELLS.columns), len(CELL_RESERVATIONS.columns)
    cell = cell_of(row[:cells])
    load = Load(*row[cells + 1 : cells + loads])
    runtime = row[cells + loads :]
    return CellView(cell, load, SILENT if runtime[0] is None else volatile.runtime_of(runtime))


PLACE = """
SELECT user_id, relay_host_id, cell_id, epoch, lease_expires_at
FROM assignments JOIN assignment_liveness USING (user_id, relay_host_id)
WHERE user_id = %s AND relay_host_id = %s
"""
VIEWS = """
SELECT c.*, r.*, t.cell_id, t.observed_requests, t.heartbeat::text, t.telemetry::text,
       t.rehome_capability::text, t.rehome_safety::text
FROM cells c JOIN cell_reservations r USING (cell_id) LEFT JOIN cell_runtime t USING (cell_id)
ORDER BY c.cell_id
"""
USE = """
SELECT (SELECT count(*) FROM assignments WHERE cell_id = %(cell_id)s),
       count(*),
       count(*) FILTER (WHERE kind = 'control' AND units = 1
                          AND starts_with(activity_id, 'control-pending:'))
FROM activity_leases WHERE cell_id = %(cell_id)s
"""
