"""Whoever waits for the log to grow waits beyond what the look before the wait covered.

A stream once took the position to wait beyond after it had looked, so what came in between counted
as seen: after a burst, some readers stayed entries behind until somebody wrote again. In memory, a
subscription that was not waiting at the moment of an append slept over it until its next poll.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import StoredEvent
from starlette.types import Message

from adapters.clock import SystemClock
from adapters.memory import MemoryStore
from adapters.memory_recorder import MemoryRecorder
from adapters.postgres.log_pages import Page
from adapters.postgres.recorder import follow
from app.http.events import EventStream
from tests.http.running import NOW, Running, running
from tests.waiting import until

READERS = 16
BURSTS = 10
ENTRIES = 5
BURST_COMMANDS = 24
BEHIND_SECONDS_MAX = 10.0
"""Far more than a reader that is awake needs, far less than one that sleeps."""


class Reader:
    """One reader of the whole log, at the service's own event loop."""

    def __init__(self, edge: Running) -> None:
        self.position = 0
        self._gone = asyncio.Event()
        self._stream = EventStream(edge.service, 0, None, None, lambda _: b"", _allow)

    async def read(self) -> None:
        await self._stream({"type": "http"}, self._receive, self._send)

    async def leave(self) -> None:
        self._gone.set()

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        for line in message.get("body", b"").splitlines():
            if line.startswith(b"id: "):
                assert int(line[4:]) == self.position + 1
                self.position += 1


async def _allow() -> None:
    pass


def follow_while(edge: Running, count: int, act: Callable[[list[Reader]], None]) -> None:
    readers = [Reader(edge) for _ in range(count)]
    reading = [asyncio.run_coroutine_threadsafe(it.read(), edge.loop) for it in readers]
    try:
        act(readers)
    finally:
        for reader, task in zip(readers, reading, strict=True):
            edge.run(reader.leave())
            task.result(BEHIND_SECONDS_MAX)


def test_what_comes_between_the_look_and_the_wait_is_sent(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(database, tmp_path) as edge:
        look, tail = edge.service.reads.page, edge.service.tail
        rounds = iter(range(3))

        async def page(*wanted: Any) -> Page:
            found = await look(*wanted)
            if (number := next(rounds, None)) is not None:
                await asyncio.to_thread(edge.configure, f"c-{number}")
                assert await tail.beyond(found.head, BEHIND_SECONDS_MAX)
            return found

        monkeypatch.setattr(edge.service.reads, "page", page)

        def act(readers: list[Reader]) -> None:
            until(lambda: next(rounds, None) is None, BEHIND_SECONDS_MAX)
            head = edge.head()
            until(lambda: readers[0].position == head, BEHIND_SECONDS_MAX)

        follow_while(edge, 1, act)


def test_every_reader_is_at_the_head_after_a_burst(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as edge, ThreadPoolExecutor(8) as commands:
        edge.configure("c-1")

        def act(readers: list[Reader]) -> None:
            for _ in range(BURSTS):
                bodies = [{"enabled": bool(number % 2)} for number in range(BURST_COMMANDS)]
                list(commands.map(_admit(edge), bodies))
                head = edge.head()
                until(lambda: {it.position for it in readers} == {head}, BEHIND_SECONDS_MAX)  # noqa: B023
                assert [it.position for it in readers] == [head] * READERS

        follow_while(edge, READERS, act)


def _admit(edge: Running) -> Callable[[dict[str, bool]], None]:
    def admit(body: dict[str, bool]) -> None:
        done = edge.operator.put("/v1/cells/c-1/admission", json=body)
        assert done.status_code == 204

    return admit


class Growing(threading.Condition):
    """Lets the log grow just before whoever is to wait has the lock, when nobody is notified."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store.lock)
        self._store = store
        self.slept_over: list[int] = []

    def __enter__(self) -> bool:
        entered = super().__enter__()
        head = self._store.head()
        if head.position < ENTRIES:
            event = StoredEvent("a", head.position + 1, "thing.happened", b"{}")
            self._store.append(follow(head, [event], NOW * 1_000))
        return entered

    def wait(self, timeout: float | None = None) -> bool:
        position = self._store.head().position
        if not (woken := super().wait(timeout)):
            self.slept_over.append(position)
        return woken


def test_a_subscription_in_memory_is_told_of_what_came_before_it_waits() -> None:
    store = MemoryStore()
    store.grown = Growing(store)
    with MemoryRecorder(store, SystemClock()).subscribe() as subscription:
        assert [next(subscription).id for _ in range(ENTRIES)] == list(range(1, ENTRIES + 1))
    assert store.grown.slept_over == []
