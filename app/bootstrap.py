"""The one place that wires the service. Nothing connects before the service is entered."""

import asyncio
import logging
from contextlib import AsyncExitStack
from types import TracebackType

import psycopg

from adapters.clock import Clock, Ids
from adapters.postgres import migrate, statements
from adapters.postgres.deadlines import fill_deadlines
from adapters.postgres.reads import Reads
from adapters.postgres.server import Server, open_server
from adapters.postgres.store import PostgresStore
from adapters.postgres.tail import Tail
from app.settings import Settings
from app.telemetry import Telemetry
from app.tokens import Tokens
from app.workers.sweeps import Sweeper
from app.writer import LogWriter

log = logging.getLogger("tenure.service")


class Service:
    """Everything a process runs, between entering and leaving it."""

    server: Server
    writer: LogWriter
    reads: Reads
    tail: Tail
    tokens: Tokens

    def __init__(self, settings: Settings, clock: Clock, ids: Ids) -> None:
        self.settings = settings
        self.policy = settings.policy
        self.clock = clock
        self.ids = ids
        self.telemetry = Telemetry()
        self.ready = False
        self.failure: Exception | None = None
        """Why the service could not be opened."""
        self.leaving = asyncio.Event()
        """Set when the process is asked to end: what would go on for ever ends itself."""
        self.streams = 0
        """How many readers follow the log over HTTP."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Service":
        async with AsyncExitStack() as stack:
            try:
                await self._open(stack)
            except Exception as cause:
                self.failure = cause
                log.error("cannot start", extra={"error": type(cause).__name__})
                raise
            self._stack = stack.pop_all()
        self.ready = True
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()
        await self._stack.aclose()

    def leave(self) -> None:
        """Not ready any more; streams end, commands in hand are still finished."""
        self.ready = False
        self.leaving.set()

    async def _open(self, stack: AsyncExitStack) -> None:
        settings = self.settings
        opening = open_server(
            settings.database_url,
            settings.data_dir,
            allow_unsafe=settings.allow_unsafe_durability,
        )
        self.server = stack.enter_context(opening)
        dsn = self.server.dsn
        prepare(dsn, self.clock.now_ms())
        store = PostgresStore(dsn)
        stack.callback(store.close)
        self.writer = LogWriter(store, self.clock, self.policy, self.telemetry)
        self.writer.start()
        stack.push_async_callback(asyncio.to_thread, self.writer.stop)
        self.reads = Reads(dsn, settings.database_connections_max)
        await self.reads.open()
        stack.push_async_callback(self.reads.close)
        self.tokens = Tokens(self.reads)
        self.tail = Tail(dsn)
        self.tail.start()
        stack.push_async_callback(self.tail.stop)
        if settings.sweeps:
            sweeper = Sweeper(
                dsn,
                self.writer,
                self.reads,
                self.telemetry,
                self.clock,
                self.ids,
                settings.sweep_interval_seconds,
            )
            sweeper.start()
            stack.push_async_callback(sweeper.stop)


def build(settings: Settings, *, clock: Clock, ids: Ids) -> Service:
    """The service for these settings, not yet running."""
    return Service(settings, clock, ids)


def prepare(dsn: str, now: int) -> None:
    """Bring the schema up to date; give every lease a deadline that a restore left without one.

    Late release is safe, early release is not: what is missing gets a full lease from `now`.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        for migration in migrate.apply(connection):
            log.info("migrated", extra={"migration": migration.name})
        with connection.transaction():
            connection.execute(statements.LOCK.encode())
            connection.execute(statements.TAKE_TURN.encode())
            fill_deadlines(connection, now)
