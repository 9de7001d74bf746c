"""Between events and what is stored of them: explicit topics, versions, upcasting.

An unknown topic or a version newer than the code is an error, never a skip.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from eventsourcing.persistence import JSONTranscoder, Mapper, Notification, StoredEvent
from pydantic import ValidationError

from adapters.entry import Entry, Meta
from domain.events import Event
from domain.relay.decide import EVENTS


class UnreadableEvent(Exception):
    """A stored event that this code cannot read: it must not be skipped.

    Whoever knows where it stands says so with `at`.
    """

    def __init__(self, topic: str, version: int | None, reason: str) -> None:
        super().__init__(topic, version, reason)
        self.topic = topic
        self.version = version
        """Of the event's stored form."""
        self.reason = reason
        self.position: int | None = None
        self.stream: str | None = None
        self.stream_version: int | None = None

    def at(self, position: int | None, stream: str, stream_version: int) -> "UnreadableEvent":
        """The same error, with the event's place in the log and in its stream."""
        self.position, self.stream, self.stream_version = position, stream, stream_version
        return self

    @property
    def what(self) -> str:
        """What cannot be read, where it stands, why, and what to do; without anybody's id."""
        place = "" if self.position is None else f" at position {self.position}"
        return (
            f"{self.topic}{place}, stored in version {self.version}: {self.reason}. "
            "Nothing was changed. Deploy the newer code; if there is none, "
            "`tenure log verify` tells whether the log was altered"
        )

    def __str__(self) -> str:
        stream = f"version {self.stream_version} of {self.stream}: " if self.stream else ""
        return stream + self.what


@dataclass(frozen=True)
class ChainedEvent(StoredEvent):
    """A stored event with its position, its time (epoch microseconds) and its chain value."""

    id: int
    """Its position, by the name that the library has for it in a line of the log."""
    recorded_at: int
    chain: bytes


@dataclass(frozen=True)
class ChainedNotification(Notification):
    """A stored event as a line of the log."""

    recorded_at: int
    chain: bytes


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event in its envelope: where it stands, who asked for it, when it was written."""

    originator_id: str
    originator_version: int
    event: Event
    meta: Meta
    position: int | None = None
    recorded_at: int | None = None
    chain: bytes | None = None


class EventMapper(Mapper[str]):
    """The library's mapper over pydantic events with stored names."""

    def __init__(self, events: Iterable[type[Event]] = EVENTS) -> None:
        super().__init__(JSONTranscoder())
        self.types: Mapping[str, type[Event]] = {event.topic: event for event in events}

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        event = domain_event.event
        return StoredEvent(
            originator_id=domain_event.originator_id,
            originator_version=domain_event.originator_version,
            topic=event.topic,
            state=write_state(event, write_meta(domain_event.meta)).encode(),
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        place = (str(stored_event.originator_id), stored_event.originator_version)
        position = getattr(stored_event, "id", None)
        try:
            event, meta = self.read_state(stored_event.topic, stored_event.state)
        except UnreadableEvent as error:
            raise error.at(position, *place) from None
        return Recorded(
            *place,
            event,
            meta,
            position,
            getattr(stored_event, "recorded_at", None),
            getattr(stored_event, "chain", None),
        )

    def read(self, entry: Entry) -> Event:
        """The event of a line of the log, in its newest version. Raises `UnreadableEvent`."""
        try:
            return self.read_state(entry.topic, entry.state)[0]
        except UnreadableEvent as error:
            raise error.at(entry.position, entry.stream, entry.version) from None

    def read_state(self, topic: str, state: str | bytes) -> tuple[Event, Meta]:
        """Parse a stored state. Raises `UnreadableEvent`."""
        version: int | None = None
        try:
            stored = orjson.loads(state)
            version, meta = int(stored["v"]), Meta(**stored["meta"])
            return self._event(topic, version, stored["event"]), meta
        except ValidationError as error:
            fields = {str(it["loc"][0]) for it in error.errors(include_input=False) if it["loc"]}
            reason = f"not of this form, see {', '.join(sorted(fields)) or 'all of it'}"
            raise UnreadableEvent(topic, version, reason) from None
        except (ValueError, KeyError, TypeError) as error:
            reason = f"not of this form ({type(error).__name__})"
            raise UnreadableEvent(topic, version, reason) from None

    def _event(self, topic: str, version: int, fields: dict[str, Any]) -> Event:
        event_type = self.types.get(topic)
        if event_type is None:
            raise UnreadableEvent(topic, version, "no such event is known")
        if version > event_type.version:
            raise UnreadableEvent(topic, version, f"only known up to {event_type.version}")
        for known in range(version, event_type.version):
            fields = event_type.upcasters[known](fields)
        return event_type.model_validate(fields)


def write_meta(meta: Meta) -> str:
    """The stored form of a command's meta, the same for all its events."""
    return orjson.dumps(meta).decode()


def write_state(event: Event, meta: str) -> str:
    """The stored form of an event."""
    fields = orjson.dumps(event.__dict__, default=list).decode()  # named tuples are lists
    return f'{{"v":{event.version},"meta":{meta},"event":{fields}}}'
