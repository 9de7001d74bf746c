"""What any log promises: versions, order, paging, subscriptions, many writers at once."""

import itertools
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    StoredEvent,
)

from adapters.entry import EMPTY_HEAD, Entry, first_broken
from adapters.mapper import ChainedNotification


def event(stream: str, version: int, topic: str = "thing.happened") -> StoredEvent:
    return StoredEvent(stream, version, topic, b'{"v":1}')


def events(stream: str, *versions: int) -> list[StoredEvent]:
    return [event(stream, version) for version in versions]


def versions(found: Sequence[StoredEvent]) -> list[int]:
    return [it.originator_version for it in found]


def everything(recorder: ApplicationRecorder) -> list[Notification]:
    return list(recorder.select_notifications(1, 1_000_000))


def entry(line: Notification) -> Entry:
    assert isinstance(line, ChainedNotification)
    return Entry(
        line.id,
        str(line.originator_id),
        line.originator_version,
        line.topic,
        line.state.decode(),
        line.recorded_at,
        line.chain,
    )


def test_positions_count_from_one_without_a_gap(recorder: ApplicationRecorder) -> None:
    assert recorder.max_notification_id() is None
    assert recorder.insert_events(events("a", 1, 2)) == [1, 2]
    assert recorder.insert_events(events("b", 1)) == [3]
    assert recorder.max_notification_id() == 3


def test_a_taken_version_changes_nothing(recorder: ApplicationRecorder) -> None:
    recorder.insert_events(events("a", 1))
    with pytest.raises(IntegrityError):
        recorder.insert_events(events("b", 1) + events("a", 1))
    with pytest.raises(IntegrityError):
        recorder.insert_events(events("c", 1, 1))
    assert recorder.max_notification_id() == 1
    assert recorder.insert_events(events("a", 2)) == [2]


def test_a_stream_is_read_in_order_and_in_parts(recorder: ApplicationRecorder) -> None:
    recorder.insert_events(events("a", 1, 2, 3, 4, 5) + events("b", 1))
    assert versions(recorder.select_events("a")) == [1, 2, 3, 4, 5]
    assert versions(recorder.select_events("a", gt=2)) == [3, 4, 5]
    assert versions(recorder.select_events("a", gt=1, lte=3)) == [2, 3]
    assert versions(recorder.select_events("a", desc=True, limit=2)) == [5, 4]
    assert versions(recorder.select_events("nobody")) == []


def test_the_log_is_read_in_pages_and_by_topic(recorder: ApplicationRecorder) -> None:
    recorder.insert_events([event("a", n, "odd" if n % 2 else "even") for n in range(1, 8)])

    def ids(start: int | None, limit: int, **rest: object) -> list[int]:
        return [it.id for it in recorder.select_notifications(start, limit, **rest)]  # type: ignore[arg-type]

    assert ids(1, 3) == [1, 2, 3]
    assert ids(3, 3, inclusive_of_start=False) == [4, 5, 6]
    assert ids(None, 2) == [1, 2]
    assert ids(1, 10, stop=4) == [1, 2, 3, 4]
    assert ids(2, 10, topics=["odd"]) == [3, 5, 7]
    assert ids(8, 10) == []


def test_every_entry_is_chained_to_the_one_before(recorder: ApplicationRecorder) -> None:
    recorder.insert_events(events("a", 1, 2))
    recorder.insert_events(events("ü/€", 1))
    assert first_broken(EMPTY_HEAD, [entry(it) for it in everything(recorder)]) is None


def test_a_changed_entry_breaks_the_chain(recorder: ApplicationRecorder) -> None:
    recorder.insert_events(events("a", 1, 2, 3))
    lines = [entry(it) for it in everything(recorder)]
    lines[1] = lines[1]._replace(state='{"v":1,"forged":true}')
    assert first_broken(EMPTY_HEAD, lines) == 2
    assert first_broken(EMPTY_HEAD, [lines[0], lines[2]]) == 2


def test_a_subscription_delivers_what_was_and_what_comes(recorder: ApplicationRecorder) -> None:
    recorder.insert_events(events("a", 1, 2))
    with recorder.subscribe(gt=1) as subscription:
        assert next(subscription).id == 2
        recorder.insert_events(events("a", 3))
        assert next(subscription).id == 3


def test_a_subscription_keeps_to_its_topics(recorder: ApplicationRecorder) -> None:
    with recorder.subscribe(topics=["wanted"]) as subscription:
        recorder.insert_events([event("a", 1, "other"), event("a", 2, "wanted")])
        assert next(subscription).id == 2


def test_a_tail_sees_the_table_while_sixteen_write(recorder: ApplicationRecorder) -> None:
    sizes = random.Random(16)
    writers = {
        f"stream-{n}": [sizes.choice((1, 1, 2, 3, 17, 64)) for _ in range(8)] for n in range(16)
    }
    total = sum(map(sum, writers.values()))

    def write(stream: str) -> None:
        version = itertools.count(1)
        for size in writers[stream]:
            recorder.insert_events([event(stream, next(version)) for _ in range(size)])

    with recorder.subscribe() as subscription, ThreadPoolExecutor(16) as pool:
        writing = [pool.submit(write, stream) for stream in writers]
        seen = list(itertools.islice(subscription, total))
        for it in writing:
            it.result()
    assert seen == everything(recorder)
    assert [it.id for it in seen] == list(range(1, total + 1))
    assert first_broken(EMPTY_HEAD, [entry(it) for it in seen]) is None
