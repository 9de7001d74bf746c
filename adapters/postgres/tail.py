"""The log's head as this process last saw it, kept by LISTEN and by a poll each second.

A notification may be lost and a connection may die; the poll and a new connection make up for it.
"""

import asyncio
import logging
from contextlib import suppress

import psycopg

from adapters.postgres.statements import CHANNEL

POLL_SECONDS = 1.0
CONNECT_SECONDS_MAX = 5
RETRY_SECONDS = (0.1, 5.0)
_HEAD = b"SELECT coalesce(max(position), 0) FROM log"

log = logging.getLogger("tenure.tail")


class Tail:
    """Tells waiters when the log grows. Start it once; it never ends by itself."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._grown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.position = 0
        self.listening = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name="log-tail")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def saw(self, position: int) -> None:
        """Take note that the log goes at least to `position`."""
        if position > self.position:
            self.position = position
            self._grown.set()
            self._grown = asyncio.Event()

    async def beyond(self, position: int, seconds: float) -> bool:
        """Wait until the log goes beyond `position`; False when that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while self.position <= position:
                    await self._grown.wait()
        except TimeoutError:
            return False
        return True

    async def _supervise(self) -> None:
        pause = RETRY_SECONDS[0]
        while True:
            try:
                await self._listen()
            except Exception as error:
                log.warning("the log's tail is lost", extra={"error": type(error).__name__})
            pause = RETRY_SECONDS[0] if self.listening else min(2 * pause, RETRY_SECONDS[1])
            self.listening = False
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        connection = await psycopg.AsyncConnection.connect(
            self._dsn,
            autocommit=True,
            application_name="tenure-tail",
            connect_timeout=CONNECT_SECONDS_MAX,
        )
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            self.listening = True
            while True:
                cursor = await connection.execute(_HEAD)
                row = await cursor.fetchone()
                assert row is not None
                self.saw(row[0])
                async for notice in connection.notifies(timeout=POLL_SECONDS):
                    self.saw(int(notice.payload))
