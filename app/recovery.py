"""Answering commands under the lock, whatever happens to the connection meanwhile."""

import logging
import time
from collections.abc import Callable, Sequence

from adapters.mapper import UnreadableEvent
from adapters.ports import Stalled, Store, Unavailable
from app.answers import Answer, Waiting, answer_all
from app.outcome import Outcome
from app.pulse import Pulse
from app.scribe import Draft, Request, Scribe
from app.telemetry import Telemetry

REOPEN_PAUSE_SECONDS = (0.05, 1.0)

log = logging.getLogger("tenure.writer")


class Recovery:
    """Turns under the lock: the slow path, on which everything is known exactly."""

    def __init__(
        self,
        store: Store,
        scribe: Scribe,
        telemetry: Telemetry,
        pulse: Pulse,
        seconds_max: float,
        meanwhile: Callable[[], None],
    ) -> None:
        self._store = store
        self._scribe = scribe
        self._telemetry = telemetry
        self._pulse = pulse
        self._seconds_max = seconds_max
        self._meanwhile = meanwhile
        """What is done after each failure, for those that wait behind."""
        self._broken = False
        self._unknown: Draft | None = None
        """A turn whose COMMIT was sent: nobody in it is refused before an attempt to find out."""
        self.unreadable: UnreadableEvent | None = None
        """Set for good when the log holds an event that this code cannot read."""

    def answer(self, batch: list[Waiting], draft: Draft | None) -> None:
        """Answer all of these commands; `draft` is their turn if its outcome is unknown."""
        self._unknown, self._broken = draft, self._broken or draft is not None
        pause, together = REOPEN_PAUSE_SECONDS[0], len(batch)
        while batch and self.unreadable is None:
            part = batch if len(batch) <= together else batch[:1]
            answers: Sequence[Answer]
            started = time.perf_counter()
            try:
                answers = self._attempt([it.request for it in part])
            except UnreadableEvent as error:
                self.unreadable = error
                log.critical(
                    "the log holds an event this code cannot read: %s",
                    error.what,
                    extra={
                        "position": error.position,
                        "stream": error.stream,
                        "version": error.stream_version,
                        "topic": error.topic,
                    },
                )
            except Unavailable as error:
                if not isinstance(error, Stalled):
                    self._broken = True
                    time.sleep(pause)
                    pause = min(2 * pause, REOPEN_PAUSE_SECONDS[1])
                batch = self._refuse_overdue(batch, error)
            except Exception as error:
                self._scribe.forget()
                if len(part) > 1:
                    together = len(batch) - len(part)  # one bad command must fail alone
                else:
                    log.exception("a command failed: %s", type(part[0].request.command).__name__)
                    answer_all(part, [error])
                    batch = batch[1:]
            else:
                pause = REOPEN_PAUSE_SECONDS[0]
                self._pulse.committed()
                self._telemetry.turn(len(answers), time.perf_counter() - started)
                answer_all(batch[: len(answers)], answers)
                batch = batch[len(answers) :]
        answer_all(batch, [Unavailable("the log cannot be read")] * len(batch))

    def _attempt(self, requests: list[Request]) -> Sequence[Outcome]:
        """Find out what became of the turn in doubt, or run one with the first of these."""
        try:
            if self._broken:
                self._telemetry.reopened()
                self._store.reopen()
                self._broken = False
            unknown = self._unknown
            if unknown is not None and self._was_committed(unknown):
                self._unknown = None
                return unknown.outcomes
            self._unknown = None
            return self._scribe.run(requests)
        except Exception as error:
            sent, self._scribe.draft = self._scribe.draft, None
            if not isinstance(error, Unavailable):
                self._unknown = None
            elif not isinstance(error, Stalled):
                self._unknown = sent or self._unknown
            self._scribe.forget()
            raise

    def _refuse_overdue(self, batch: list[Waiting], error: Unavailable) -> list[Waiting]:
        """Refuse those that have waited their time; answers the others.

        While it is unknown whether they were committed, all wait for what is found out.
        """
        self._meanwhile()
        came_before = time.monotonic() - self._seconds_max
        overdue = sum(it.since <= came_before for it in batch)
        if self._unknown is not None and overdue < len(batch):
            return batch
        answer_all(batch[:overdue], [error] * overdue)
        return batch[overdue:]

    def _was_committed(self, draft: Draft) -> bool:
        """Whether a turn whose COMMIT got no answer is in the log, or left its results.

        One that left neither may be decided anew: it changed nothing that cannot be done again.
        """
        if draft.batch.entries:
            return self._store.committed(draft.batch.entries[-1])
        kept = {result.key: result for result in draft.batch.results}
        return bool(kept) and self._store.stored(list(kept)) == kept
