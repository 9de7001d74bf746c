"""Between events and what is stored of them: explicit topics, versions, upcasting.

An unknown topic or a version newer than the code is an error, never a skip.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from eventsourcing.persistence import JSONTranscoder, Mapper, Notification, StoredEvent

from adapters.entry import Entry, Meta
from domain.events import Event
from domain.relay.decide import EVENTS


class UnreadableEvent(Exception):
    """A stored event that this code cannot read: it must not be skipped."""

    def __init__(self, topic: str, version: int | None, reason: str) -> None:
        super().__init__(f"{topic} version {version}: {reason}")
        self.topic = topic
        self.version = version


@dataclass(frozen=True)
class ChainedEvent(StoredEvent):
    """A stored event with the time it was recorded (epoch microseconds) and its chain value."""

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
        event, meta = self.read_state(stored_event.topic, stored_event.state)
        return Recorded(
            str(stored_event.originator_id),
            stored_event.originator_version,
            event,
            meta,
            getattr(stored_event, "id", None),
            getattr(stored_event, "recorded_at", None),
            getattr(stored_event, "chain", None),
        )

    def read(self, entry: Entry) -> Event:
        """The event of a line of the log, brought up to the newest version."""
        return self.read_state(entry.topic, entry.state)[0]

    def read_state(self, topic: str, state: str | bytes) -> tuple[Event, Meta]:
        """Parse a stored state. Raises `UnreadableEvent`."""
        stored = orjson.loads(state)
        version, fields = stored["v"], stored["event"]
        event_type = self.types.get(topic)
        if event_type is None:
            raise UnreadableEvent(topic, version, "no such event is known")
        if version > event_type.version:
            raise UnreadableEvent(topic, version, f"only known up to {event_type.version}")
        while version < event_type.version:
            fields = event_type.upcasters[version](fields)
            version += 1
        return event_type.model_validate(fields), Meta(**stored["meta"])


def write_meta(meta: Meta) -> str:
    """The stored form of a command's meta, the same for all its events."""
    return orjson.dumps(meta).decode()


def write_state(event: Event, meta: str) -> str:
    """The stored form of an event."""
    return f'{{"v":{event.version},"meta":{meta},"event":{event.model_dump_json()}}}'
