"""Answering commands under the lock, whatever happens to the connection meanwhile."""

import logging
import time
from collections.abc import Sequence

from adapters.mapper import UnreadableEvent
from adapters.ports import Store, Unavailable
from app.answers import Answer, Waiting, answer_all
from app.outcome import Outcome
from app.scribe import Draft, Request, Scribe
from app.telemetry import Telemetry

OUTCOME_SECONDS_MAX = 30.0
REOPEN_PAUSE_SECONDS = (0.05, 1.0)

log = logging.getLogger("tenure.writer")


class Recovery:
    """Turns under the lock: the slow path, on which everything is known exactly."""

    def __init__(self, store: Store, scribe: Scribe, telemetry: Telemetry) -> None:
        self._store = store
        self._scribe = scribe
        self._telemetry = telemetry
        self._down_since: float | None = None
        """When the store went away; commands wait so long for it together, not one by one."""
        self.unreadable: UnreadableEvent | None = None
        """Set for good when the log holds an event that this code cannot read."""

    def answer(self, batch: list[Waiting], draft: Draft | None) -> None:
        """Answer all of these commands; `draft` is their turn if its outcome is unknown."""
        while batch:
            started = time.perf_counter()
            answers = self._answers([it.request for it in batch], draft)
            draft = None
            self._telemetry.turn(len(answers), time.perf_counter() - started)
            answer_all(batch[: len(answers)], answers)
            batch = batch[len(answers) :]

    def _answers(self, requests: list[Request], draft: Draft | None) -> Sequence[Answer]:
        """The answers to the first of these commands: at least one."""
        try:
            return self._persist(requests, draft)
        except UnreadableEvent as error:
            self.unreadable = error
            self._scribe.forget()
            log.critical("the log holds an event this code cannot read: %s", error.topic)
            return [Unavailable("the log cannot be read")] * len(requests)
        except Unavailable as error:
            return [error] * len(requests)
        except Exception as error:
            self._scribe.forget()
            if len(requests) > 1:
                # One bad command must fail alone.
                return [self._answers([request], None)[0] for request in requests]
            log.exception("a command failed: %s", type(requests[0].command).__name__)
            return [error]

    def _persist(self, requests: list[Request], draft: Draft | None) -> Sequence[Outcome]:
        """Run a turn; when the connection breaks, find out what became of it."""
        pause = REOPEN_PAUSE_SECONDS[0]
        reopen = draft is not None
        while True:
            if self.unreadable is not None:
                raise Unavailable("the log cannot be read")
            try:
                if reopen:
                    self._telemetry.reopened()
                    self._store.reopen()
                if draft is not None and self._was_committed(draft):
                    outcomes: Sequence[Outcome] = draft.outcomes
                else:
                    draft = None
                    outcomes = self._scribe.run(requests)
            except Unavailable:
                # A turn that was sent may have been committed; it is kept until that is known.
                draft, self._scribe.draft = self._scribe.draft or draft, None
                self._scribe.forget()
                self._down_since = self._down_since or time.monotonic()
                if time.monotonic() >= self._down_since + OUTCOME_SECONDS_MAX:
                    raise
                reopen = True
                time.sleep(pause)
                pause = min(2 * pause, REOPEN_PAUSE_SECONDS[1])
            else:
                self._down_since = None
                return outcomes

    def _was_committed(self, draft: Draft) -> bool:
        """Whether a turn whose COMMIT got no answer is in the log, or left its results.

        One that left neither may be decided anew: it changed nothing that cannot be done again.
        """
        if draft.batch.entries:
            return self._store.committed(draft.batch.entries[-1])
        kept = {result.key: result for result in draft.batch.results}
        return bool(kept) and self._store.stored(list(kept)) == kept
