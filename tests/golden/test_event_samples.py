"""What was stored once stays readable, and what is stored does not change by accident."""

from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from adapters.entry import Meta
from adapters.mapper import EventMapper, Recorded, UnreadableEvent, write_meta, write_state
from domain.events import Event
from domain.relay.decide import EVENTS as EVENT_TYPES
from domain.relay.placement import HostPlaced
from tests.golden.samples import EVENTS, FOLDER, META, sample_path, stored, write_missing

PATHS = sorted(FOLDER.glob("*.json"))
MAPPER = EventMapper()


def topic_of(path: Path) -> str:
    return path.name.rsplit(".v", 1)[0]


@pytest.mark.parametrize("event", EVENTS, ids=lambda it: it.topic)
def test_a_sample_reads_to_its_event_and_writes_back_the_same(event: Event) -> None:
    sample = sample_path(event).read_text()
    assert MAPPER.read_state(event.topic, sample) == (event, META)
    assert stored(event) == sample


@pytest.mark.parametrize("path", PATHS, ids=lambda it: it.stem)
def test_every_sample_ever_written_is_still_readable(path: Path) -> None:
    event, meta = MAPPER.read_state(topic_of(path), path.read_text())
    assert event.topic == topic_of(path)
    assert meta == META


def test_every_event_has_a_sample_at_every_version() -> None:
    names = {f"{it.topic}.v{n}.json" for it in EVENT_TYPES for n in range(1, it.version + 1)}
    assert {path.name for path in PATHS} == names
    assert {type(event) for event in EVENTS} == set(EVENT_TYPES)


def test_every_field_of_a_sample_says_something() -> None:
    """A field at its default would not show that it is stored."""
    for event in EVENTS:
        for name, field in type(event).model_fields.items():
            assert field.is_required() or getattr(event, name) != field.default, name


def test_only_missing_samples_are_written(tmp_path: Path) -> None:
    kept = tmp_path / sample_path(EVENTS[0]).name
    kept.write_text("what was stored once")
    written = write_missing(EVENTS, tmp_path)
    assert len(written) == len(EVENTS) - 1
    assert kept.read_text() == "what was stored once"
    assert write_missing(EVENTS, tmp_path) == []
    for path in written:
        assert path.read_bytes() == (FOLDER / path.name).read_bytes()


# what cannot be read must not be skipped


def changed(event: Event, **fields: Any) -> bytes:
    """The stored state of an event with other fields; None leaves one out."""
    state = orjson.loads(stored(event))
    for name, value in fields.items():
        state["event"].pop(name, None)
        if value is not None:
            state["event"][name] = value
    return orjson.dumps(state)


def test_an_unknown_topic_is_an_error() -> None:
    with pytest.raises(UnreadableEvent, match="no such event is known") as unreadable:
        MAPPER.read_state("host.vanished", stored(EVENTS[0]))
    assert (unreadable.value.topic, unreadable.value.version) == (
        "host.vanished",
        EVENTS[0].version,
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda it: it.topic)
def test_a_version_newer_than_the_code_is_an_error(event: Event) -> None:
    newer = stored(event).replace(f'{{"v":{event.version},', f'{{"v":{event.version + 1},', 1)
    with pytest.raises(UnreadableEvent, match="only known up to"):
        MAPPER.read_state(event.topic, newer)


@pytest.mark.parametrize("event", EVENTS, ids=lambda it: it.topic)
def test_a_field_that_is_missing_or_new_without_a_version_is_an_error(event: Event) -> None:
    for name, field in type(event).model_fields.items():
        if field.is_required():
            with pytest.raises(UnreadableEvent, match=name):
                MAPPER.read_state(event.topic, changed(event, **{name: None}))
    with pytest.raises(UnreadableEvent, match="renamed"):
        MAPPER.read_state(event.topic, changed(event, renamed="value"))


# versions


def test_a_placement_of_version_1_tells_its_best_candidates_as_one_of_today_does() -> None:
    """It listed all of them, in no order."""
    old = orjson.loads((FOLDER / "host.placed.v1.json").read_text())
    old["event"]["cell_id"] = "chosen"
    old["event"]["candidates"] = [
        ["full", 9, 0, 10],
        ["third", 2, 1, 10],
        ["first", 1, 0, 10],
        ["chosen", 5, 0, 10],
        ["also-first", 0, 1, 10],
        ["fuller", 10, 0, 10],
    ]
    event, _ = MAPPER.read_state("host.placed", orjson.dumps(old))
    assert isinstance(event, HostPlaced)
    assert [it[0] for it in event.candidates] == ["chosen", "also-first", "first", "third"]
    assert event.more_candidates == 2


class ParcelSent(Event):
    """A toy event that changed once: its weight was stored in grams first."""

    topic: ClassVar[str] = "parcel.sent"
    version: ClassVar[int] = 3
    upcasters: ClassVar[dict[int, Any]] = {
        1: lambda fields: {"at": fields["at"], "weight_kg": fields["grams"] / 1_000},
        2: lambda fields: {**fields, "express": False},
    }

    weight_kg: float
    express: bool


PARCELS = EventMapper([ParcelSent])


@pytest.mark.parametrize(
    "state",
    [
        '{"v":1,"meta":{"command_id":"c","actor":"a"},"event":{"at":7,"grams":500}}',
        '{"v":2,"meta":{"command_id":"c","actor":"a"},"event":{"at":7,"weight_kg":0.5}}',
        '{"v":3,"meta":{"command_id":"c","actor":"a"},'
        '"event":{"at":7,"weight_kg":0.5,"express":false}}',
    ],
)
def test_older_versions_are_brought_up_step_by_step(state: str) -> None:
    event = ParcelSent(at=7, weight_kg=0.5, express=False)
    assert PARCELS.read_state("parcel.sent", state) == (event, Meta("c", "a"))


def test_what_is_written_is_always_the_newest_version() -> None:
    event = ParcelSent(at=7, weight_kg=0.5, express=True)
    assert write_state(event, write_meta(META)).startswith('{"v":3,')


# the library's envelope


@pytest.mark.parametrize("event", EVENTS, ids=lambda it: it.topic)
def test_the_librarys_mapper_stores_the_same_and_reads_it_back(event: Event) -> None:
    recorded = Recorded("stream", 4, event, META)
    stored_event = MAPPER.to_stored_event(recorded)
    assert stored_event.topic == event.topic
    assert stored_event.state.decode() == stored(event)
    assert MAPPER.to_domain_event(stored_event) == recorded
