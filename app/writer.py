"""The log writer: waiting commands become group commits, in order of arrival.

One thread. While PostgreSQL commits a turn, the next is decided on the states that the first will
leave behind, and grows until it is its turn. If another process had a turn in between, or a commit
fails, what was decided ahead is void and is decided anew under the lock. Nobody is answered before
the commit.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice

from adapters.clock import Clock
from adapters.mapper import EventMapper, UnreadableEvent
from adapters.ports import Committing, Overtaken, Result, Stalled, Store, Unavailable
from app.answers import Waiting, answer_all, waiting_coroutine, waiting_thread
from app.inbox import Inbox
from app.outcome import Outcome
from app.pulse import Pulse
from app.recovery import Recovery
from app.scribe import Draft, Request, Scribe
from app.telemetry import Telemetry
from app.working_set import WorkingSet
from domain.relay.policy import Policy

COMMANDS_PER_BATCH_MAX = 64
COMMANDS_DECIDED_AT_ONCE_MAX = 16
COMMANDS_WAITING_MAX = 4_096
COMMAND_SECONDS_MAX = 10.0
"""How long a command may wait for its commit; then it is refused as soon as that is the truth."""
PREFETCHED_MAX = 4 * COMMANDS_PER_BATCH_MAX
HOSTS_CACHED_MAX = 100_000
HOSTS_CACHED_MIN = 16 * COMMANDS_PER_BATCH_MAX
"""Hosts of a turn on its way must stay: what the store tells of them is out of date."""
TURNS_UNDER_LOCK_AFTER_OVERTAKEN = 100

log = logging.getLogger("tenure.writer")


class QueueFull(Exception):
    """Too many commands are waiting; try again a little later."""


@dataclass(slots=True)
class Turn:
    """Commands, what was decided for them, and their commit once it has begun."""

    waiting: list[Waiting]
    draft: Draft
    started: float
    commit: Committing | None = None


class LogWriter:
    """Decides and commits commands. Start it, submit, stop it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Policy,
        telemetry: Telemetry,
        *,
        hosts_cached_max: int = HOSTS_CACHED_MAX,
        commands_waiting_max: int = COMMANDS_WAITING_MAX,
        command_seconds_max: float = COMMAND_SECONDS_MAX,
    ) -> None:
        assert hosts_cached_max >= HOSTS_CACHED_MIN
        self._store = store
        self._scribe = Scribe(store, WorkingSet(EventMapper(), policy, hosts_cached_max), clock)
        self._pulse = Pulse()
        self._recovery = Recovery(
            store, self._scribe, telemetry, self._pulse, command_seconds_max, self._take_in
        )
        self._telemetry = telemetry
        telemetry.stalled_seconds.set_function(lambda: self.stalled_seconds)
        self._inbox = Inbox()
        self._backlog: deque[Waiting] = deque()
        self._waiting_max = commands_waiting_max
        self._seconds_max = command_seconds_max
        self._decided: Turn | None = None
        self._committing: Turn | None = None
        self._turns_under_lock = 0
        self._gate = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="log-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Refuse new commands, finish what is waiting, end the thread."""
        with self._gate:
            self._stopping = True
            self._inbox.close()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether commands are taken; false for good once the log cannot be read."""
        return self._thread.is_alive() and self.unreadable is None

    @property
    def unreadable(self) -> UnreadableEvent | None:
        return self._recovery.unreadable

    @property
    def stalled_seconds(self) -> float:
        """How long commands have been waiting without any being committed."""
        with self._gate:
            return self._pulse.stalled_seconds

    def submit(self, request: Request) -> "Future[Outcome]":
        """Hand over a request from a thread. Raises `QueueFull`."""
        waiting, future = waiting_thread(request)
        self._put(waiting)
        return future

    async def execute(self, request: Request) -> Outcome:
        """Hand over a request from a coroutine and wait for it. Raises `QueueFull`."""
        waiting, future = waiting_coroutine(request, asyncio.get_running_loop())
        self._put(waiting)
        return await future

    def submit_all(self, requests: Sequence[Request]) -> "list[asyncio.Future[Outcome]]":
        """Hand over requests from a coroutine, in order, all or none. Raises `QueueFull`."""
        loop = asyncio.get_running_loop()
        pairs = [waiting_coroutine(request, loop) for request in requests]
        self._put(*[waiting for waiting, _ in pairs])
        return [future for _, future in pairs]

    def _put(self, *waiting: Waiting) -> None:
        with self._gate:  # what passes it is answered, though the writer is being stopped
            queued = len(self._inbox) + len(self._backlog)
            if self._stopping or queued + len(waiting) > self._waiting_max:
                raise QueueFull
            for it in waiting:
                self._pulse.took(it)
            self._inbox.put(*waiting)

    # the writer's thread

    def _work(self) -> None:
        while not (self._stopping and self._idle()):
            try:
                self._step()
            except Exception as error:
                log.exception("the writer made a mistake; what it had in hand fails")
                self._fail(error)
        self._inbox.discard()

    def _step(self) -> None:
        self._receive()
        if self._backlog and not self._full():
            self._take_next()
        self._begin_commit()

    def _fail(self, error: Exception) -> None:
        """Answer what is in hand, what may be committed truthfully, and start from nothing."""
        decided, self._decided = self._decided, None
        if decided is not None:
            answer_all(decided.waiting, [error] * len(decided.waiting))
        try:
            self._end_commit()
        except Exception:
            log.exception("a turn's outcome could not be told")
        self._scribe.forget()

    def _idle(self) -> bool:
        return not (self._inbox or self._backlog or self._decided or self._committing)

    def _full(self) -> bool:
        return self._decided is not None and len(self._decided.waiting) >= COMMANDS_PER_BATCH_MAX

    def _receive(self) -> None:
        """Take new commands and the end of a commit, waiting for them if nothing else is due."""
        may_decide = self._backlog and not self._full()
        committing = self._committing
        commit = committing.commit if committing is not None else None
        if self._inbox.wait(commit, block=not may_decide):
            self._end_commit()
        self._take_in()
        if not self._must_lock():
            self._prefetch()

    def _take_in(self) -> None:
        """Take what has arrived; refuse what has waited its time."""
        self._backlog.extend(self._inbox.take())
        overdue: list[Waiting] = []
        came_before = time.monotonic() - self._seconds_max
        while self._backlog and self._backlog[0].since <= came_before:
            overdue.append(self._backlog.popleft())
        answer_all(overdue, [Unavailable("no turn in time")] * len(overdue))

    def _prefetch(self) -> None:
        """Begin to look up what comes next, while other things are done."""
        self._scribe.prefetch(it.request for it in islice(self._backlog, PREFETCHED_MAX))

    def _take_next(self) -> None:
        """Decide some of the waiting commands, ahead of the lock if they can be.

        Few at once: the sooner a turn can begin to commit, the sooner the next overlaps it.
        """
        room = COMMANDS_PER_BATCH_MAX - (len(self._decided.waiting) if self._decided else 0)
        batch: list[Waiting] = []
        while self._backlog and len(batch) < min(room, COMMANDS_DECIDED_AT_ONCE_MAX):
            command = self._backlog[0].request.command
            if self._must_lock() or self._scribe.needs_lock(command):
                break
            batch.append(self._backlog.popleft())
        if batch:
            self._decide_ahead(batch)
        else:
            self._run_locked()

    def _must_lock(self) -> bool:
        """Whether nothing may be decided ahead: others write, or the log cannot be read."""
        return self._turns_under_lock > 0 or self.unreadable is not None

    def _decide_ahead(self, batch: list[Waiting]) -> None:
        turn = self._decided
        if turn is None:
            turn = self._decided = Turn([], self._scribe.new_draft(), time.perf_counter())
        committing: dict[str, Result] = {}
        if self._committing is not None:
            committing = self._committing.draft.results
        turn.waiting.extend(batch)
        requests = [it.request for it in batch]
        try:
            self._scribe.prepare(requests)
            self._prefetch()
            done = self._scribe.decide_ahead(requests, turn.draft, committing)
            left = [turn.waiting.pop() for _ in batch[done:]]
            self._backlog.extendleft(left)
            if not turn.waiting:
                self._decided = None
        except Exception as error:
            # What is known may be half changed: let the lock sort it out.
            self._end_commit()
            if self._decided is turn:
                self._start_over(turn, error)

    def _begin_commit(self) -> None:
        """Send the decided turn if no other is on its way."""
        turn = self._decided
        if turn is None or self._committing is not None:
            return
        self._decided, self._committing = None, turn
        try:
            turn.commit = self._store.commit_ahead(turn.draft.batch, self._scribe.known.next_turn())
        except Exception as error:
            self._committing = None
            self._start_over(turn, error)

    def _end_commit(self) -> None:
        """Wait for the turn on its way, and answer it."""
        turn, self._committing = self._committing, None
        if turn is None or turn.commit is None:
            return
        try:
            turn.commit.finish()
        except Exception as error:
            self._start_over(turn, error)
        else:
            self._telemetry.turn(len(turn.waiting), time.perf_counter() - turn.started)
            self._pulse.committed()
            answer_all(turn.waiting, turn.draft.outcomes)
            if turn.draft.batch.entries:
                self._telemetry.position.set(turn.draft.batch.entries[-1].position)

    def _start_over(self, failed: Turn, failure: Exception) -> None:
        """Void everything decided ahead; find out what became of the failed turn."""
        later, self._decided = self._decided, None
        if later is not None and later is not failed:
            self._backlog.extendleft(reversed(later.waiting))
        self._scribe.forget()
        if isinstance(failure, Overtaken):
            self._turns_under_lock = TURNS_UNDER_LOCK_AFTER_OVERTAKEN
            self._backlog.extendleft(reversed(failed.waiting))
            return
        log.warning("a turn failed and is looked into under the lock: %s", type(failure).__name__)
        unknown = isinstance(failure, Unavailable) and not isinstance(failure, Stalled)
        self._recovery.answer(failed.waiting, failed.draft if unknown else None)

    def _run_locked(self) -> None:
        """Run one turn under the lock, with everything before it committed."""
        while self._committing is not None or self._decided is not None:
            self._begin_commit()
            self._end_commit()
        batch: list[Waiting] = []
        while self._backlog and len(batch) < COMMANDS_PER_BATCH_MAX:
            batch.append(self._backlog.popleft())
        self._turns_under_lock = max(0, self._turns_under_lock - 1)
        self._recovery.answer(batch, None)
