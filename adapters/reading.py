"""Reading many events fast: the stored form is cut open instead of parsed twice.

`EventMapper` reads any stored state; this takes the way through pydantic's own JSON parser for
states exactly as `write_state` writes them today, and leaves all others to the mapper.
"""

from collections.abc import Callable, Mapping
from types import new_class
from typing import Any, ClassVar, TypeAlias

from pydantic import ConfigDict, TypeAdapter, ValidationError

from adapters.entry import Entry
from adapters.mapper import EventMapper, UnreadableEvent
from domain.events import Event
from domain.relay.placement import HostPlaced

Views: TypeAlias = Mapping[type[Event], type[Event]]
_EVENT = b',"event":{'
"""Cannot occur inside a JSON text, where quotes are escaped, nor in the flat meta before it."""
_END = b"}}"


def without(event: type[Event], *names: str) -> type[Event]:
    """The event without some fields: they are not even parsed, and asking for one is an error."""

    def body(namespace: dict[str, Any]) -> None:
        namespace["__module__"] = event.__module__
        namespace["__annotations__"] = dict.fromkeys(names, ClassVar[Any])
        namespace["model_config"] = ConfigDict(extra="ignore")

    return new_class(event.__name__, (event,), exec_body=body)


FOLDING_VIEWS: Views = {HostPlaced: without(HostPlaced, "candidates")}
"""No fold reads what a placement saw; with 24 cells it is most of the log's bytes."""


class EventReader:
    """Answers what `EventMapper.read_state` answers, without the meta."""

    def __init__(self, mapper: EventMapper, views: Views | None = None) -> None:
        views = views or {}
        self._mapper = mapper
        self._ways: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
            topic: (
                b'{"v":%d,"meta":{' % event.version,
                TypeAdapter(views.get(event, event)).validator.validate_json,
            )
            for topic, event in mapper.types.items()
        }

    def read(self, topic: str, state: bytes) -> Event:
        """The event of a stored state, or its view. Raises `UnreadableEvent`."""
        way = self._ways.get(topic)
        if way is not None and state.startswith(way[0]) and state.endswith(_END):
            start = state.find(_EVENT)
            if start > 0:
                try:
                    event: Event = way[1](state[start + len(_EVENT) - 1 : -1])
                except ValidationError:
                    return self._mapper.read_state(topic, state)[0]  # it says what is wrong
                return event
        return self._mapper.read_state(topic, state)[0]

    def read_entry(self, entry: Entry) -> Event:
        """The event of a line of the log. Raises `UnreadableEvent`."""
        try:
            return self.read(entry.topic, entry.state.encode())
        except UnreadableEvent as error:
            raise error.at(entry.position, entry.stream, entry.version) from None
