"""Reading beside the writer, asynchronously, over a bounded pool of connections.

An answer comes with the log's position that it is true for: both are read in one statement.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from adapters.entry import EMPTY_HEAD, Head
from adapters.ports import Unavailable
from adapters.postgres import log_pages, statements, store, tokens
from adapters.postgres.log_pages import Page
from adapters.postgres.server import DURABILITY_SETTINGS
from adapters.postgres.tokens import Token
from domain.ids import HostId
from domain.relay.views import CellUse, CellView, Place
from projections.relay.cells import CELLS

STATEMENT_TIMEOUT_MS = 5_000
CONNECTION_WAIT_SECONDS_MAX = 5.0
CONNECT_SECONDS_MAX = 5
CLOSE_SECONDS_MAX = 1.0
CONNECTION_SETTINGS: dict[str, Any] = {
    "autocommit": True,
    "application_name": "tenure",
    "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c jit=off",
}

T = TypeVar("T")
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)
Connection = psycopg.AsyncConnection[TupleRow]


@dataclass(frozen=True, slots=True)
class At(Generic[T]):
    """Something read, and the log's position it is true for."""

    value: T
    position: int


@dataclass(frozen=True, slots=True)
class Versioned:
    """A cell with the version of its stream."""

    view: CellView
    version: int


class Reads:
    """Questions to the projections, the log and the tokens. Raises `Unavailable`.

    What a lost connection leaves unanswered is asked once more, on a connection made for it: every
    statement here may be applied twice.
    """

    def __init__(self, dsn: str, connections_max: int) -> None:
        self._dsn = dsn
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            dsn,
            min_size=min(2, connections_max),
            max_size=connections_max,
            open=False,
            timeout=CONNECTION_WAIT_SECONDS_MAX,
            # Pauses between attempts double. They must not outgrow what a reader waits, or reads
            # would go on to fail when the database is back.
            reconnect_timeout=CONNECTION_WAIT_SECONDS_MAX,
            kwargs=CONNECTION_SETTINGS,
        )

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close(timeout=CLOSE_SECONDS_MAX)

    # the projections

    async def place(self, host: HostId) -> At[Place | None]:
        row = await self._one(_PLACE, [*host])
        return At(None if row[1] is None else Place(*host, *row[1:]), row[0])

    async def where(self, host: HostId) -> At[tuple[Place, CellView] | None]:
        """The host's place together with its cell."""
        row = await self._one(_WHERE, [*host])
        if row[1] is None:
            return At(None, row[0])
        return At((Place(*host, *row[1:4]), store.view_of(row[4:])), row[0])

    async def views(self) -> At[list[Versioned]]:
        """All cells, by id."""
        rows = await self._all(_VIEWS, [])
        found = [_versioned(row) for row in rows if row[1] is not None]
        return At(found, rows[0][0])

    async def cell(self, cell_id: str) -> At[tuple[Versioned, CellUse] | None]:
        """A cell and how much of it is in use."""
        row = await self._one(_CELL, {"cell_id": cell_id})
        if row[4] is None:
            return At(None, row[0])
        return At((_versioned((row[0], *row[4:])), CellUse(*row[1:4])), row[0])

    async def lease_cell(self, host: HostId, activity_id: str) -> str | None:
        """The cell that an activity lease weighs on."""
        rows = await self._all(_LEASE_CELL, [*host, activity_id])
        return str(rows[0][0]) if rows else None

    # the log

    async def head(self) -> Head:
        rows = await self._all(statements.LAST, [])
        return Head(rows[0][0], rows[0][6], rows[0][5]) if rows else EMPTY_HEAD

    async def page(
        self, after: int, limit: int, stream: str | None = None, topic: str | None = None
    ) -> Page:
        """Entries after a position, of one stream or topic if wanted; it need not be full."""
        found = await self._all(*log_pages.look(after, limit, stream, topic))
        return log_pages.page(after, limit, found)

    # idempotency

    async def forget_results(self, before: int, limit: int) -> int:
        """Prune outcomes stored before this time (epoch ms); answers how many."""
        return await self._do(statements.FORGET_RESULTS, [before, limit])

    # tokens

    async def token(self, token_sha256: bytes) -> Token | None:
        """The token with this hash, unless it was revoked."""
        rows = await self._all(tokens.FIND, [token_sha256])
        return Token(*rows[0]) if rows else None

    async def create_token(self, token: Token) -> None:
        """Store a token, unless it is stored already."""
        stored = [token.token_sha256, token.token_id, token.role, token.bound_to, token.created_at]
        await self._do(tokens.CREATE, stored)

    async def revoke_token(self, token_id: str, at: int) -> bool:
        """End a token at `at` (epoch ms); answers whether it was in use."""
        return await self._do(tokens.REVOKE, {"at": at, "token_id": token_id}) == 1

    # health

    async def durability(self) -> dict[str, str]:
        """The server's durability settings by name."""
        rows = await self._all(_DURABILITY, [list(DURABILITY_SETTINGS)])
        return dict(rows)

    async def migrations_applied(self) -> int:
        row = await self._one("SELECT count(*) FROM schema_migrations", [])
        return int(row[0])

    async def ping(self) -> None:
        await self._one("SELECT 1", [])

    # asking

    async def _all(self, query: str, parameters: Any) -> list[TupleRow]:
        async def ask(connection: Connection) -> list[TupleRow]:
            cursor = await connection.execute(query.encode(), parameters, prepare=True)
            return await cursor.fetchall()

        return await self._asked(ask)

    async def _one(self, query: str, parameters: Any) -> TupleRow:
        rows = await self._all(query, parameters)
        return rows[0]

    async def _do(self, statement: str, parameters: Any) -> int:
        async def ask(connection: Connection) -> int:
            return (await connection.execute(statement.encode(), parameters)).rowcount

        return await self._asked(ask)

    async def _asked(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        try:
            async with self._pool.connection() as connection:
                try:
                    return await ask(connection)
                except _LOST:
                    if not connection.broken:
                        raise
                    # Not one of the pool's: what ended this connection may have ended all of
                    # them. The broken one keeps its place meanwhile, so the bound holds.
                    async with await self._connect() as fresh:
                        return await ask(fresh)
        except (*_LOST, PoolTimeout) as error:
            raise Unavailable(type(error).__name__) from error

    async def _connect(self) -> Connection:
        return await psycopg.AsyncConnection.connect(
            self._dsn, connect_timeout=CONNECT_SECONDS_MAX, **CONNECTION_SETTINGS
        )


def _versioned(row: Any) -> Versioned:
    """A row of the position and the columns of `VIEWS`; the version ends the cell's columns."""
    return Versioned(store.view_of(row[1:]), row[_VERSION_COLUMN])


_VERSION_COLUMN = len(CELLS.columns)
_HEAD = "(SELECT coalesce(max(position), 0) AS head FROM log) AS h"
_CELL_COLUMNS = """
c.*, r.*, t.cell_id, t.observed_requests, t.heartbeat::text, t.telemetry::text,
t.rehome_capability::text, t.rehome_safety::text
"""
_CELL_TABLES = """
cells c JOIN cell_reservations r USING (cell_id) LEFT JOIN cell_runtime t USING (cell_id)
"""
_HELD = """
SELECT a.cell_id, a.epoch, l.lease_expires_at
FROM assignments a JOIN assignment_liveness l USING (user_id, relay_host_id)
WHERE a.user_id = %s AND a.relay_host_id = %s
"""
_PLACE = f"SELECT h.head, p.* FROM {_HEAD} LEFT JOIN ({_HELD}) AS p ON true"
_WHERE = f"""
SELECT h.head, p.*, v.* FROM {_HEAD} LEFT JOIN ({_HELD}) AS p ON true
LEFT JOIN LATERAL (
    SELECT {_CELL_COLUMNS} FROM {_CELL_TABLES} WHERE c.cell_id = p.cell_id
) AS v ON true
"""
_VIEWS = f"""
SELECT h.head, {_CELL_COLUMNS} FROM {_HEAD} LEFT JOIN ({_CELL_TABLES}) ON true
ORDER BY c.cell_id
"""
_CELL = f"""
SELECT h.head, used.*, {_CELL_COLUMNS}
FROM {_HEAD} CROSS JOIN ({store.USE}) AS used(assignments, leases, pending)
LEFT JOIN ({_CELL_TABLES}) ON c.cell_id = %(cell_id)s
"""
_LEASE_CELL = """
SELECT cell_id FROM activity_leases
WHERE user_id = %s AND relay_host_id = %s AND activity_id = %s
"""
_DURABILITY = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
