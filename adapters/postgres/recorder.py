"""The library's recorder over our log: reading by stream and position, appending, subscribing."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    OperationalError,
    StoredEvent,
    Subscription,
)

from adapters.entry import EMPTY_HEAD, Entry, Head, chained
from adapters.mapper import ChainedEvent, ChainedNotification
from adapters.postgres import statements
from adapters.postgres.reading_connection import ReadingConnection
from adapters.postgres.rows import array, json_array

POLL_SECONDS = 1.0
RECONNECT_SECONDS = (0.1, 5.0)

log = logging.getLogger("tenure.log")


def append(connection: psycopg.Connection[Any], entries: Sequence[Entry]) -> None:
    """Add entries that follow the head; the caller holds the writer lock.

    A stream version that exists already fails with a unique violation.
    """
    position, stream, version, topic, state, recorded_at, chain = zip(*entries, strict=True)
    parameters = (
        recorded_at[0],
        array(position),
        array(stream),
        array(version),
        array(topic),
        json_array(state),
        array([value.hex() for value in chain]),
    )
    connection.execute(statements.APPEND, parameters, prepare=True)
    connection.execute(statements.NOTIFY, [position[-1]], prepare=True)


def follow(head: Head, events: Sequence[StoredEvent], recorded_at: int) -> list[Entry]:
    """Stored events as the entries after the head."""
    entries = []
    position, chain = head.position, head.chain
    for event in events:
        position += 1
        parts = (
            position,
            str(event.originator_id),
            event.originator_version,
            event.topic,
            event.state.decode(),
            max(recorded_at, head.recorded_at),
        )
        chain = chained(chain, *parts)
        entries.append(Entry(*parts, chain))
    return entries


class PostgresRecorder(ApplicationRecorder):
    """Reads the log for the library, and appends to it outside of commands (imports, tests).

    Commands go through the log writer: only that keeps projections in step.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._reading = ReadingConnection(dsn)

    def close(self) -> None:
        """End the connection that reads share; what still reads opens it again."""
        self._reading.close()

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Append in one turn of the writers' lock; a taken stream version changes nothing."""
        if not stored_events:
            return []
        with (
            _library_errors(),
            psycopg.connect(
                self._dsn, autocommit=True, application_name="tenure-log"
            ) as connection,
            connection.transaction(),
        ):
            connection.execute(statements.LOCK)
            connection.execute(statements.TAKE_TURN)
            row = connection.execute(statements.LAST).fetchone()
            head = EMPTY_HEAD if row is None else Head(row[0], row[6], row[5])
            clock = connection.execute(statements.CLOCK).fetchone()
            assert clock is not None
            entries = follow(head, stored_events, clock[0])
            append(connection, entries)
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
        order = "DESC" if desc else "ASC"
        query = f"""
            SELECT {statements.EVENT_COLUMNS} FROM log
            WHERE stream = %s AND version > coalesce(%s, -1) AND version <= coalesce(%s, {2**62})
            ORDER BY version {order} LIMIT %s
        """
        rows = self._fetch(query, [str(originator_id), gt, lte, limit])
        return [ChainedEvent(*row) for row in rows]

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
        query = f"""
            SELECT {statements.ENTRY_COLUMNS} FROM log
            WHERE position > %s AND position <= coalesce(%s, {2**62})
              AND (cardinality(%s::text[]) = 0 OR topic = ANY(%s::text[]))
            ORDER BY position LIMIT %s
        """
        wanted = array(list(topics))
        rows = self._fetch(query, [after, stop, wanted, wanted, limit])
        return [notification(Entry(*row)) for row in rows]

    def max_notification_id(self) -> int | None:
        newest: int | None
        ((newest,),) = self._fetch("SELECT max(position) FROM log")
        return newest

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return PostgresSubscription(self, self._dsn, gt, topics)

    def _fetch(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _library_errors():
            return self._reading.fetch(query, parameters)


@contextmanager
def _library_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.IntegrityError as error:
        raise IntegrityError(error) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise OperationalError(error) from error


class PostgresSubscription(ListenNotifySubscription[PostgresRecorder]):
    """Delivers every entry in order, though notifications or connections get lost.

    LISTEN makes it fast, a poll each second makes it sure, and both are started again with growing
    pauses when the server goes away.
    """

    def __init__(
        self, recorder: PostgresRecorder, dsn: str, gt: int | None, topics: Sequence[str]
    ) -> None:
        self._dsn = dsn
        self.healthy = True
        self._stopped = Event()
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._listener = Thread(target=self._listen, name="log-listener", daemon=True)
        self._listener.start()

    def stop(self) -> None:
        super().stop()
        self._stopped.set()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        try:
            super().__exit__(*args, **kwargs)
        finally:
            self._listener.join()

    def _listen(self) -> None:
        pause = RECONNECT_SECONDS[0]
        while not self._has_been_stopped:
            try:
                with psycopg.connect(
                    self._dsn, autocommit=True, application_name="tenure-listen"
                ) as connection:
                    connection.execute(f"LISTEN {statements.CHANNEL}")
                    pause = RECONNECT_SECONDS[0]
                    while not self._has_been_stopped:
                        # Before waiting: what came before LISTEN was never notified of.
                        self._has_been_notified.set()
                        list(connection.notifies(timeout=POLL_SECONDS, stop_after=1))
            except psycopg.Error as error:
                log.warning("the listening connection was lost: %s", type(error).__name__)
                self._stopped.wait(pause)
                pause = min(2 * pause, RECONNECT_SECONDS[1])

    def _loop_on_pull(self) -> None:
        pause = RECONNECT_SECONDS[0]
        while not self._has_been_stopped:
            try:
                self._pull()
                self.healthy, pause = True, RECONNECT_SECONDS[0]
            except OperationalError as error:
                self.healthy = False
                log.warning("the log cannot be read: %s", type(error).__name__)
                self._stopped.wait(pause)
                pause = min(2 * pause, RECONNECT_SECONDS[1])
            except BaseException as error:
                self._thread_error = error
                self.stop()
                return
            else:
                # Cleared only before a look; so if it stops from here on, that is notified of.
                if not self._has_been_stopped:
                    self._has_been_notified.wait()


def notification(entry: Entry) -> ChainedNotification:
    """A line of the log as the library's notification."""
    return ChainedNotification(
        entry.stream,
        entry.version,
        entry.topic,
        entry.state.encode(),
        entry.position,
        entry.recorded_at,
        entry.chain,
    )
