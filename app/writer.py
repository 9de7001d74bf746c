"""The log writer: one thread that turns waiting commands into group commits.

Callers hand over requests and are answered after the commit, never before. The queue is bounded;
a full queue is an answer, not a wait.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from adapters.clock import Clock
from adapters.mapper import EventMapper, UnreadableEvent
from adapters.ports import Store, Unavailable
from app.outcome import Outcome
from app.scribe import Draft, Request, Scribe
from app.telemetry import Telemetry
from app.working_set import WorkingSet
from domain.relay.policy import Policy

COMMANDS_PER_BATCH_MAX = 64
COMMANDS_WAITING_MAX = 4_096
HOSTS_CACHED_MAX = 100_000
OUTCOME_SECONDS_MAX = 30.0
REOPEN_PAUSE_SECONDS = (0.05, 1.0)

log = logging.getLogger("tenure.writer")


class QueueFull(Exception):
    """Too many commands are waiting; try again a little later."""


Deliver = Callable[[Outcome | Exception], None]


@dataclass(slots=True)
class Waiting:
    """A request and where its outcome goes."""

    request: Request
    deliver: Deliver | None
    loop: asyncio.AbstractEventLoop | None = None
    future: "asyncio.Future[Outcome] | None" = None


class LogWriter:
    """Decides and commits commands in order of arrival. Start it, submit, stop it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Policy,
        telemetry: Telemetry,
        *,
        hosts_cached_max: int = HOSTS_CACHED_MAX,
        commands_waiting_max: int = COMMANDS_WAITING_MAX,
    ) -> None:
        self._store = store
        self._scribe = Scribe(store, WorkingSet(EventMapper(), policy, hosts_cached_max), clock)
        self._telemetry = telemetry
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._waiting_max = commands_waiting_max
        self._thread = threading.Thread(target=self._work, name="log-writer", daemon=True)
        self._stopping = False
        self.unreadable: UnreadableEvent | None = None
        """Set for good when the log holds an event that this code cannot read."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish what is waiting, then end the thread."""
        self._stopping = True
        self._waiting.put(None)
        self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and self.unreadable is None

    def submit(self, request: Request) -> "Future[Outcome]":
        """Hand over a request from a thread. Raises `QueueFull`."""
        future: Future[Outcome] = Future()

        def deliver(outcome: Outcome | Exception) -> None:
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._put(Waiting(request, deliver))
        return future

    async def execute(self, request: Request) -> Outcome:
        """Hand over a request from a coroutine and wait for it. Raises `QueueFull`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._put(Waiting(request, None, loop, future))
        return await future

    def _put(self, waiting: Waiting) -> None:
        if self._stopping or self._waiting.qsize() >= self._waiting_max:
            raise QueueFull
        self._waiting.put(waiting)

    def _work(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            while batch:
                batch = self._answer(batch)

    def _next_batch(self) -> list[Waiting] | None:
        """Wait for a command, and take what else is there; None at the end."""
        first = self._waiting.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < COMMANDS_PER_BATCH_MAX:
            try:
                waiting = self._waiting.get_nowait()
            except queue.Empty:
                break
            if waiting is None:
                self._waiting.put(None)
                break
            batch.append(waiting)
        return batch

    def _answer(self, batch: list[Waiting]) -> list[Waiting]:
        """Run one turn and answer whom it took; the rest comes next."""
        started = time.perf_counter()
        try:
            outcomes: Sequence[Outcome | Exception] = self._run([it.request for it in batch])
        except UnreadableEvent as error:
            self.unreadable = error
            log.critical(
                "the log holds an event this code cannot read", extra={"topic": error.topic}
            )
            outcomes = [Unavailable("the log cannot be read")] * len(batch)
        except Unavailable as error:
            outcomes = [error] * len(batch)
        except Exception as error:
            self._scribe.known.forget()
            if len(batch) > 1:
                # One bad command must fail alone.
                for waiting in batch:
                    self._answer([waiting])
                return []
            log.exception("a command failed: %s", _name(batch[0]))
            outcomes = [error]
        self._telemetry.turn(len(outcomes), time.perf_counter() - started)
        _deliver(batch[: len(outcomes)], outcomes)
        return batch[len(outcomes) :]

    def _run(self, requests: list[Request]) -> Sequence[Outcome]:
        """Run a turn; when the connection breaks, find out what became of it."""
        deadline = time.monotonic() + OUTCOME_SECONDS_MAX
        pause = REOPEN_PAUSE_SECONDS[0]
        draft: Draft | None = None
        while True:
            if self.unreadable is not None:
                raise Unavailable("the log cannot be read")
            try:
                if draft is not None and self._was_committed(draft):
                    return draft.outcomes
                draft = None
                return self._scribe.run(requests)
            except Unavailable:
                draft = self._scribe.draft or draft
                self._scribe.draft = None
                self._scribe.known.forget()
                self._telemetry.reopened()
                if time.monotonic() >= deadline:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, REOPEN_PAUSE_SECONDS[1])
                self._reopen()

    def _reopen(self) -> None:
        try:
            self._store.reopen()
        except Unavailable:
            log.warning("the store is unavailable")

    def _was_committed(self, draft: Draft) -> bool:
        """Whether a turn whose COMMIT got no answer is in the log, or left its results."""
        if draft.batch.entries:
            return self._store.committed(draft.batch.entries[-1])
        keys = [result.key for result in draft.batch.results]
        return bool(keys) and len(self._store.stored(keys)) == len(keys)


def _name(waiting: Waiting) -> str:
    return type(waiting.request.command).__name__


def _deliver(batch: Sequence[Waiting], outcomes: Sequence[Outcome | Exception]) -> None:
    """Answer everyone; coroutines of one loop are woken together."""
    by_loop: dict[
        asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Outcome], Outcome | Exception]]
    ] = {}
    for waiting, outcome in zip(batch, outcomes, strict=True):
        if waiting.loop is not None and waiting.future is not None:
            by_loop.setdefault(waiting.loop, []).append((waiting.future, outcome))
        elif waiting.deliver is not None:
            waiting.deliver(outcome)
    for loop, answers in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_set_all, answers)


def _set_all(answers: list[tuple["asyncio.Future[Outcome]", Outcome | Exception]]) -> None:
    for future, outcome in answers:
        if future.cancelled():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
