"""Audit snapshots and chain checks: the log alone tells what was true, or that it was altered."""

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from adapters.audit import BrokenChain, HeadNotFound, WrittenHead, check_log, take_snapshot
from adapters.clock import VirtualClock
from adapters.entry import Entry, Meta
from adapters.mapper import EventMapper
from adapters.memory import MemoryStore
from adapters.postgres.store import PostgresStore
from adapters.reading import FOLDING_VIEWS, EventReader
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.control import ActivateControl
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.policy import Policy
from projections.catalogue import TABLES
from tests.projections.logs import NOW

GOLDEN = Path(__file__).parents[1] / "golden" / "audit-snapshot.json"
HOST = HostId("user-1", "desktop-1")


def small_log() -> MemoryStore:
    """Two cells, a host with a live control, a splice begun and ended."""
    store = MemoryStore()
    known = WorkingSet(EventMapper(), Policy(require_live_cells=False), hosts_max=10)
    scribe = Scribe(store, known, VirtualClock(NOW))
    cells = tuple(
        CellSettings(f"c-{i}", f"https://c-{i}.example", 10 * i, "us-central1") for i in (1, 2)
    )
    for command in (
        ReconcileCells(cells, disable_missing=True),
        Assign(HOST, None, None),
        ActivateControl(HOST, "c-1", 1, 1, True, "c-1-boot-1", None),
        AcquireActivity(HOST, "splice:1", "splice", "c-1", None),
        ReleaseActivity(HOST, "splice:1"),
    ):
        outcome = scribe.run([Request(command, Meta("command", "test"))])[0]
        assert outcome.refusal is None
    return store


def test_the_snapshot_of_a_small_log_is_the_golden_one() -> None:
    store = small_log()
    taken = take_snapshot(store, store.head().position, EventMapper())
    assert taken.document == GOLDEN.read_bytes().rstrip(b"\n")
    assert taken.sha256 == hashlib.sha256(taken.document).hexdigest()
    assert (taken.position, taken.chain) == (store.head().position, store.head().chain.hex())


def test_a_snapshot_is_canonical() -> None:
    store = small_log()
    document = take_snapshot(store, store.head().position, EventMapper()).document
    told = orjson.loads(document)
    assert orjson.dumps(told, option=orjson.OPT_SORT_KEYS) == document
    assert [row["cell_id"] for row in told["tables"]["cells"]] == ["c-1", "c-2"]


def test_a_snapshot_at_a_position_is_the_state_then() -> None:
    store = small_log()
    whole = store.entries
    for position in range(len(whole) + 1):
        then = MemoryStore()
        then.entries = whole[:position]
        expected = take_snapshot(then, position, EventMapper())
        assert take_snapshot(store, position, EventMapper()) == expected
    empty = orjson.loads(take_snapshot(store, 0, EventMapper()).document)
    assert not any(empty["tables"].values())


def test_the_snapshot_at_the_head_shows_the_live_tables(untouched: str) -> None:
    store = PostgresStore(untouched)
    try:
        taken = take_snapshot(store, store.head().position, EventMapper())
        tables = orjson.loads(taken.document)["tables"]
        for table in TABLES:
            live = [dict(zip(table.columns, row, strict=True)) for row in store.dump(table.name)]
            assert tables[table.name] == live
    finally:
        store.close()


def test_a_snapshot_beyond_the_log_is_refused() -> None:
    with pytest.raises(HeadNotFound, match="ends at position"):
        take_snapshot(small_log(), 1_000, EventMapper())


@pytest.mark.parametrize("part", ["state", "stream", "version", "topic", "recorded_at"])
def test_an_edited_entry_is_found(part: str) -> None:
    store = small_log()
    entry = store.entries[2]
    value = getattr(entry, part)
    edited = value.replace("c", "d") if isinstance(value, str) else value + 1
    changes: dict[str, Any] = {part: edited}
    store.entries[2] = entry._replace(**changes)
    with pytest.raises(BrokenChain) as caught:
        check_log(store)
    assert caught.value.position == 3
    with pytest.raises(BrokenChain):
        take_snapshot(store, 4, EventMapper())
    assert take_snapshot(store, 2, EventMapper()).position == 2


def test_a_missing_entry_is_found() -> None:
    store = small_log()
    del store.entries[1]
    with pytest.raises(BrokenChain, match="position 2"):
        check_log(store)


def test_a_cut_tail_and_a_rewritten_log_are_found_by_a_head_written_down() -> None:
    store = small_log()
    head = store.head()
    written = WrittenHead(head.position, head.chain)
    assert check_log(store, written) == head
    assert check_log(store, WrittenHead(2, store.entries[1].chain)) == head
    cut = MemoryStore()
    cut.entries = store.entries[:-1]
    assert check_log(cut).position == head.position - 1
    with pytest.raises(HeadNotFound, match="its tail was cut"):
        check_log(cut, written)
    with pytest.raises(HeadNotFound, match="another chain value"):
        check_log(store, WrittenHead(2, store.entries[2].chain))


def test_the_fast_reader_reads_what_the_mapper_reads(untouched: str) -> None:
    mapper, store = EventMapper(), PostgresStore(untouched)
    fast, views = EventReader(mapper), EventReader(mapper, FOLDING_VIEWS)
    seen = set()
    try:
        for entry in store.read(0, 100_000):
            state = entry.state.encode()
            event = mapper.read(entry)
            assert fast.read(entry.topic, state) == event
            fields = vars(views.read(entry.topic, state))
            assert {name: getattr(event, name) for name in fields} == fields
            seen.add(type(event))
    finally:
        store.close()
    assert seen >= set(FOLDING_VIEWS)


def test_other_stored_forms_are_left_to_the_mapper() -> None:
    entry: Entry = small_log().entries[-1]
    mapper = EventMapper()
    spaced = orjson.dumps(orjson.loads(entry.state), option=orjson.OPT_INDENT_2)
    assert EventReader(mapper).read(entry.topic, spaced) == mapper.read(entry)
