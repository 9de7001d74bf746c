"""All sweeps, again and again, in one process at a time.

The process that holds the advisory lock sweeps; when it ends, another one takes over.
"""

import asyncio
import logging
import random
from contextlib import suppress

import psycopg
from psycopg.rows import TupleRow

from adapters.clock import Clock, Ids
from adapters.entry import Meta
from adapters.postgres.reads import Reads
from app.sweeps import SWEEPS, sweep
from app.telemetry import Telemetry
from app.writer import LogWriter

SWEEP_LOCK = 0x73776565707321  # "sweeps!", held by the process that sweeps
CONNECT_SECONDS_MAX = 5
JITTER = 0.2
"""How much shorter or longer than the interval a pause may be, as a fraction."""
RESULTS_KEPT_MS = 86_400_000
RESULTS_PRUNED_AT_ONCE_MAX = 10_000
PRUNE_ROUNDS_MAX = 100
RESULTS_SWEEP = "command-results"

Connection = psycopg.AsyncConnection[TupleRow]
log = logging.getLogger("tenure.sweeps")


class Sweeper:
    """Sweeps at intervals. A failure of one sweep is counted and stops no other."""

    def __init__(
        self,
        dsn: str,
        writer: LogWriter,
        reads: Reads,
        telemetry: Telemetry,
        clock: Clock,
        ids: Ids,
        interval_seconds: float,
    ) -> None:
        self._dsn = dsn
        self._writer = writer
        self._reads = reads
        self._telemetry = telemetry
        self._clock = clock
        self._ids = ids
        self._interval_seconds = interval_seconds
        self._lock: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name="sweeps")

    async def stop(self) -> None:
        """End the loop and let another process sweep."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._let_go()

    async def run_once(self) -> bool:
        """Run all sweeps if this process is the one that sweeps; answers whether it is."""
        if not await self._hold_lock():
            return False
        for name in SWEEPS:
            await self._isolated(name)
        await self._isolated(RESULTS_SWEEP)
        return True

    async def _supervise(self) -> None:
        while True:
            try:
                await self.run_once()
            except Exception as error:
                await self._let_go()
                log.warning("no sweep could run", extra={"error": type(error).__name__})
            jitter = 1 + random.uniform(-JITTER, JITTER)
            await asyncio.sleep(self._interval_seconds * jitter)

    async def _isolated(self, name: str) -> None:
        try:
            if name == RESULTS_SWEEP:
                count = await self._prune_results()
            else:
                meta = Meta(self._ids.new(), f"sweeper:{name}")
                count = await sweep(self._writer, name, meta)
        except Exception as error:
            self._telemetry.sweep_failed(name)
            log.warning("a sweep failed", extra={"sweep": name, "error": type(error).__name__})
        else:
            self._telemetry.swept(name, count)

    async def _prune_results(self) -> int:
        before, pruned = self._clock.now_ms() - RESULTS_KEPT_MS, 0
        for _ in range(PRUNE_ROUNDS_MAX):
            count = await self._reads.forget_results(before, RESULTS_PRUNED_AT_ONCE_MAX)
            pruned += count
            if count < RESULTS_PRUNED_AT_ONCE_MAX:
                break
        return pruned

    async def _hold_lock(self) -> bool:
        """Whether this process has the lock; it belongs to a connection of its own."""
        if self._lock is not None:
            try:
                await self._lock.execute("SELECT 1")
            except psycopg.Error:
                await self._let_go()
            else:
                return True
        connection = await psycopg.AsyncConnection.connect(
            self._dsn,
            autocommit=True,
            application_name="tenure-sweeps",
            connect_timeout=CONNECT_SECONDS_MAX,
        )
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", [SWEEP_LOCK])
        row = await cursor.fetchone()
        if row is None or not row[0]:
            await connection.close()
            return False
        self._lock = connection
        return True

    async def _let_go(self) -> None:
        if self._lock is not None:
            await self._lock.close()
            self._lock = None
