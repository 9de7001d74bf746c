"""The library's recorder over the log in memory."""

from collections.abc import Sequence
from threading import Thread
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    StoredEvent,
    Subscription,
)

from adapters.clock import Clock
from adapters.entry import Entry
from adapters.mapper import ChainedEvent
from adapters.memory import MemoryStore
from adapters.postgres.recorder import follow, notification


class MemoryRecorder(ApplicationRecorder):
    """Same promises as on PostgreSQL."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        store = self.store
        with store.lock:
            store.turns += 1
            entries = follow(store.head(), stored_events, self._clock.now_us())
            taken = {(e.stream, e.version) for e in entries}
            known = {
                (e.stream, e.version) for stream, _ in taken for e in store.streams.get(stream, ())
            }
            if len(taken) < len(entries) or taken & known:
                raise IntegrityError("a stream version exists already")
            store.append(entries)
        return [entry.position for entry in entries]

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        entries = [
            entry
            for entry in self.store.streams.get(str(originator_id), ())
            if (gt is None or entry.version > gt) and (lte is None or entry.version <= lte)
        ]
        entries.sort(key=lambda entry: entry.version, reverse=desc)
        return [chained_event(entry) for entry in entries[:limit]]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        after = -1 if start is None else start - 1 if inclusive_of_start else start
        found = [
            entry
            for entry in self.store.read(max(after, 0), len(self.store.entries))
            if (stop is None or entry.position <= stop) and (not topics or entry.topic in topics)
        ]
        return [notification(entry) for entry in found[:limit]]

    def max_notification_id(self) -> int | None:
        return self.store.head().position or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return MemorySubscription(self, gt, topics)


class MemorySubscription(ListenNotifySubscription[MemoryRecorder]):
    """Woken by the store when it grows."""

    def __init__(self, recorder: MemoryRecorder, gt: int | None, topics: Sequence[str]) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._listener = Thread(target=self._listen, name="log-listener", daemon=True)
        self._listener.start()

    def stop(self) -> None:
        super().stop()
        with self._recorder.store.grown:
            self._recorder.store.grown.notify_all()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        super().__exit__(*args, **kwargs)
        self._listener.join()

    def _listen(self) -> None:
        """Notify of what the log grew beyond what was notified of, not of what grows from now."""
        store, notified = self._recorder.store, 0
        while not self._has_been_stopped:
            with store.grown:
                while store.head().position == notified and not self._has_been_stopped:
                    store.grown.wait()
                notified = store.head().position
            self._has_been_notified.set()


def chained_event(entry: Entry) -> ChainedEvent:
    """A line of the log as the library's stored event."""
    return ChainedEvent(
        entry.stream,
        entry.version,
        entry.topic,
        entry.state.encode(),
        entry.position,
        entry.recorded_at,
        entry.chain,
    )
