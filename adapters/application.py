"""The log as an application of the `eventsourcing` library: cold reads, snapshots, export.

Commands never go through `Application.save`: it would insert after the decision, in a transaction
of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from uuid import UUID

import psycopg
from eventsourcing.application import AggregateNotFoundError, Application, ProjectorFunction
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    EventStore,
    JSONTranscoder,
    Mapper,
    StoredEvent,
)
from eventsourcing.utils import Environment, EnvType

from adapters.mapper import EventMapper, UnreadableEvent
from adapters.postgres.reading_connection import ReadingConnection
from adapters.postgres.recorder import PostgresRecorder
from adapters.reading import EventReader
from adapters.snapshots import FOLD_FINGERPRINT, SNAPSHOT_TOPIC, read_assignment, write_assignment
from adapters.streams import host_stream
from domain.events import Event
from domain.ids import HostId
from domain.relay.assignment import Assignment, AssignmentEvent
from domain.relay.decide import evolve_assignment

LOG_SECTION_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class Held:
    """An assignment at a version of its stream: the library's aggregate, and our snapshot."""

    originator_id: str
    originator_version: int
    assignment: Assignment

    @property
    def id(self) -> str:
        return self.originator_id

    @property
    def version(self) -> int:
        return self.originator_version


class Folded(NamedTuple):
    """An event as a fold needs it: without who asked for it and when."""

    originator_id: str
    originator_version: int
    event: Event


def project(held: Held | None, events: Iterable[Folded | Held]) -> Held | None:
    """Fold a snapshot and the events after it."""
    last: Folded | Held | None = held
    assignment = held.assignment if held else None
    for last in events:
        if isinstance(last, Held):
            assignment = last.assignment
        else:
            assert isinstance(last.event, AssignmentEvent)
            assignment = evolve_assignment(assignment, last.event)
    if last is None or assignment is None:
        return None
    return Held(last.originator_id, last.originator_version, assignment)


_PROJECT = cast(ProjectorFunction[Held, Any], project)
"""For the type checker: the library infers the aggregate's type from it."""


class FoldingMapper(EventMapper):
    """Reads events for folds, the fast way."""

    def __init__(self) -> None:
        super().__init__()
        self._reader = EventReader(self)

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        place = (str(stored_event.originator_id), stored_event.originator_version)
        try:
            event = self._reader.read(stored_event.topic, stored_event.state)
        except UnreadableEvent as error:
            raise error.at(getattr(stored_event, "id", None), *place) from None
        return Folded(*place, event)


class SnapshotMapper(Mapper[str]):
    """Between held assignments and their stored snapshots."""

    def __init__(self) -> None:
        super().__init__(JSONTranscoder())

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        state = write_assignment(domain_event.assignment).encode()
        return StoredEvent(
            domain_event.originator_id, domain_event.originator_version, SNAPSHOT_TOPIC, state
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        return Held(
            str(stored_event.originator_id),
            stored_event.originator_version,
            read_assignment(stored_event.state),
        )


class PostgresSnapshots(AggregateRecorder):
    """The newest snapshot of each stream. One folded by other code is as good as none."""

    def __init__(self, dsn: str, fingerprint: str = FOLD_FINGERPRINT) -> None:
        self._dsn = dsn
        self._fingerprint = fingerprint
        self._reading = ReadingConnection(dsn)

    def close(self) -> None:
        """End the connection that reads share."""
        self._reading.close()

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            for event in stored_events:
                connection.execute(
                    "INSERT INTO snapshots (stream, version, fingerprint, state) "
                    "VALUES (%s, %s, %s, %s) ON CONFLICT (stream) DO UPDATE SET "
                    "version = excluded.version, fingerprint = excluded.fingerprint, "
                    "state = excluded.state",
                    [
                        str(event.originator_id),
                        event.originator_version,
                        self._fingerprint,
                        event.state,
                    ],
                )

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        rows = self._reading.fetch(
            "SELECT version, state FROM snapshots WHERE stream = %s AND fingerprint = %s "
            "AND version > coalesce(%s, -1) AND version <= coalesce(%s, version)",
            [str(originator_id), self._fingerprint, gt, lte],
        )
        return [StoredEvent(originator_id, row[0], SNAPSHOT_TOPIC, row[1]) for row in rows]


class TenureLog(Application[str]):
    """Reading the log through the library. Closing it closes what it was given."""

    log_section_size = LOG_SECTION_ENTRIES

    def __init__(
        self, recorder: PostgresRecorder, snapshots: PostgresSnapshots | None = None
    ) -> None:
        self._given_recorder = recorder
        self._given_snapshots = snapshots
        super().__init__()

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Settings come from us alone, never from the process environment."""
        enabled = "y" if self._given_snapshots is not None else "n"
        return Environment(name, {"IS_SNAPSHOTTING_ENABLED": enabled})

    def construct_mapper(self) -> Mapper[str]:
        return FoldingMapper()

    def construct_recorder(self) -> ApplicationRecorder:
        return self._given_recorder

    def construct_snapshot_store(self) -> EventStore[str]:
        assert self._given_snapshots is not None
        return EventStore(SnapshotMapper(), self._given_snapshots)

    def close(self) -> None:
        super().close()
        self._given_recorder.close()
        if self._given_snapshots is not None:
            self._given_snapshots.close()

    def held(self, host: HostId, version: int | None = None) -> Held | None:
        """A host's assignment as of a version of its stream, or now; None if there is none."""
        stream = host_stream(host)
        try:
            return self.repository.get(stream, version=version, projector_func=_PROJECT)
        except AggregateNotFoundError:
            return None

    def snapshot(self, host: HostId) -> None:
        """Keep the host's assignment as it is now."""
        held = self.held(host)
        if held is not None and self.snapshots is not None:
            self.snapshots.put([held])
