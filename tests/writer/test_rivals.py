"""Processes that write to one database are together one serial history."""

import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import orjson

from adapters.clock import VirtualClock
from adapters.entry import EMPTY_HEAD, Meta, first_broken
from adapters.mapper import EventMapper
from adapters.memory import MemoryStore
from adapters.postgres.store import PostgresStore
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.relay.policy import Policy
from projections.catalogue import TABLES
from tests.waiting import until
from tests.writer.commands import FLEET
from tests.writer.rival import code

NOW = 1_700_000_000_000
COMMANDS_EACH = 1_500
BUSTLE_ENTRIES = 200
RIVAL_SECONDS_MAX = 300
POLICY = Policy(require_live_cells=False)


def scribe_on(store: Any) -> Scribe:
    return Scribe(store, WorkingSet(EventMapper(), POLICY, 1_000), VirtualClock(NOW))


def start_rival(dsn: str, name: str, seed: int, commands: int) -> "subprocess.Popen[bytes]":
    words = [dsn, name, str(seed), str(commands), str(NOW)]
    command = [sys.executable, "-m", "tests.writer.rival", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def run_rivals(store: PostgresStore, dsn: str, commands_each: int, seed: int) -> list[Any]:
    """What each command was answered, over all processes. The last one starts into the bustle."""
    processes = [
        start_rival(dsn, name, seed + number, commands_each)
        for number, name in enumerate(("left", "right"))
    ]
    until(lambda: store.head().position > BUSTLE_ENTRIES)
    processes.append(start_rival(dsn, "late", seed + 2, commands_each))
    told: list[Any] = []
    for process in processes:
        out, _ = process.communicate(timeout=RIVAL_SECONDS_MAX)
        assert process.returncode == 0
        told += pickle.loads(out)
    return told


def test_three_processes_write_one_serial_history(database: str) -> None:
    assert check_rivals(database, COMMANDS_EACH, seed=0) == 3 * COMMANDS_EACH


def check_rivals(database: str, commands_each: int, seed: int) -> int:
    """Let them write, then replay all of it serially; how many commands there were."""
    store = PostgresStore(database)
    scribe_on(store).run([Request(FLEET, Meta("fleet", "test"))])
    told = run_rivals(store, database, commands_each, seed)
    entries = store.read(0, 1_000_000)
    assert first_broken(EMPTY_HEAD, entries) is None

    written = Counter(orjson.loads(entry.state)["meta"]["command_id"] for entry in entries)
    assert {command_id.split("-")[0] for command_id in written} >= {"left", "right", "late"}

    def order(line: Any) -> tuple[int, bool]:
        command_id, _, _, _, position = line
        return position - written[command_id], written[command_id] > 0

    # A command is decided on the state before its first event. Commands without events at one
    # position commute here: the clock stands still.
    replay = scribe_on(memory := MemoryStore())
    replay.run([Request(FLEET, Meta("fleet", "test"))])
    for command_id, command, answer, refused, position in sorted(told, key=order):
        outcome = replay.run([Request(command, Meta(command_id, command_id.split("-")[0]))])[0]
        assert (outcome.answer, code(outcome)) == (answer, refused), command_id
        assert outcome.position == position
    assert [entry.state for entry in memory.entries] == [entry.state for entry in entries]
    for table in TABLES:
        assert memory.dump(table.name) == store.dump(table.name), table.name
    store.close()
    return len(told)
