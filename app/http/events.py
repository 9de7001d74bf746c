"""Server-sent events: the log as it grows, to one reader.

A stream reads the log itself, a page at a time, so nothing is kept for a slow reader. One that
leaves a page unread for too long is told so and dropped; it may come back with `Last-Event-ID`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adapters.entry import Entry
from adapters.ports import Unavailable
from app.bootstrap import Service
from app.tokens import ASK_AGAIN_SECONDS
from domain.refusals import Refusal

STREAMS_MAX = 256
"""Each reads a page at each growth of the log, over the connections that all reads share."""
PAGE_ENTRIES_MAX = 200
PING_SECONDS = 15.0
SLOW_READER_SECONDS = 10.0
TELL_SECONDS_MAX = 2.0


class SlowReader(Exception):
    """The reader did not take a page in time."""


class EventStream(Response):
    """Sends entries until the reader goes, is too slow or not allowed, or the service ends."""

    media_type = "text/event-stream"
    slow_reader_seconds = SLOW_READER_SECONDS
    ping_seconds = PING_SECONDS
    ask_again_seconds = ASK_AGAIN_SECONDS

    def __init__(
        self,
        service: Service,
        after: int,
        stream: str | None,
        topic: str | None,
        render: Callable[[Entry], bytes],
        allow: Callable[[], Awaitable[None]],
    ) -> None:
        """`allow` refuses when the reader may not read any more."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._service = service
        self._after = after
        self._stream = stream
        self._topic = topic
        self._render = render
        self._allow = allow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._service.streams += 1
        try:
            await self._serve(receive, send)
        finally:
            self._service.streams -= 1

    async def _serve(self, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        reading = [
            asyncio.create_task(self._follow(send)),
            asyncio.create_task(self._ask_again()),
        ]
        endings = [
            asyncio.create_task(_gone(receive)),
            asyncio.create_task(self._service.leaving.wait()),
        ]
        try:
            await asyncio.wait([*reading, *endings], return_when=asyncio.FIRST_COMPLETED)
            if endings[0].done():
                return
            told = b"event: leaving\ndata: the service ends\n\n"
            for ended in reading:
                if ended.done():
                    told = self._last_words(ended.exception())
            with suppress(TimeoutError):
                async with asyncio.timeout(TELL_SECONDS_MAX):
                    reading[0].cancel()
                    await _chunk(send, told, more=False)
        finally:
            for task in (*reading, *endings):
                task.cancel()
            await asyncio.gather(*reading, *endings, return_exceptions=True)

    def _last_words(self, error: BaseException | None) -> bytes:
        if isinstance(error, Refusal):
            return b"event: %b\ndata: %d\n\n" % (error.code.encode(), self._after)
        if isinstance(error, SlowReader):
            return b"event: too_slow\ndata: %d\n\n" % self._after
        if isinstance(error, Unavailable):
            return b"event: log_unavailable\ndata: %d\n\n" % self._after
        assert error is not None
        raise error

    async def _follow(self, send: Send) -> NoReturn:
        reads, tail = self._service.reads, self._service.tail
        await self._send(send, b": following\n\n")
        while True:
            page = await reads.page(self._after, PAGE_ENTRIES_MAX, self._stream, self._topic)
            if page.entries:
                await self._send(send, b"".join(self._event(entry) for entry in page.entries))
            # Wait beyond what this look covered, not beyond what the tail says by now: what came
            # in between was not looked at (tests/regressions/test_streams_sleep_over_entries.py).
            self._after = page.looked_to
            tail.saw(page.head)
            while not await tail.beyond(self._after, self.ping_seconds):
                await self._send(send, b": ping\n\n")

    async def _ask_again(self) -> NoReturn:
        """Ask beside the reading: a stream that is busy sending must end as soon."""
        while True:
            await asyncio.sleep(self.ask_again_seconds)
            await self._allow()

    def _event(self, entry: Entry) -> bytes:
        return b"id: %d\nevent: entry\ndata: %b\n\n" % (entry.position, self._render(entry))

    async def _send(self, send: Send, chunk: bytes) -> None:
        try:
            async with asyncio.timeout(self.slow_reader_seconds):
                await _chunk(send, chunk, more=True)
        except TimeoutError:
            raise SlowReader from None


async def _chunk(send: Send, chunk: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
