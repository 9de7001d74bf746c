"""Replay recorded traces through the log writer's hand and compare every answer and state.

    python -m tests.conformance.relay [--whole] [--store memory|postgres|both] FOLDER…

A trace stops at its first operation that does not exist yet. With `--whole` that is a failure.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import EventMapper
from adapters.memory import MemoryStore
from adapters.ports import LogReader, Store
from adapters.postgres import migrate
from adapters.postgres.server import create_database, drop_database, open_server
from adapters.postgres.store import PostgresStore
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.refusals import Refusal
from domain.relay.command import Command
from projections.catalogue import TABLES
from projections.relay import volatile
from tests.conformance.operations import (
    COMMANDS,
    QUESTIONS,
    SWEEPS,
    original_words,
    policy_of,
)
from tests.conformance.report import report
from tests.conformance.state import observed_state
from tests.conformance.traces import VECTORS, Trace, find_traces
from tests.conformance.verdict import Difference, Verdict
from tests.fold import differing_table

EMPTY = "TRUNCATE log, snapshots, command_results, " + ", ".join(
    table.name for table in (*TABLES, *volatile.TABLES)
)
OURS = {"cell_url_taken": "sql_constraint"}
"""Named refusals here that the original leaves to its storage."""


class Replay:
    """One trace on one store."""

    def __init__(self, trace: Trace, store: Store, reader: LogReader, clock: VirtualClock) -> None:
        self.trace = trace
        self.store = store
        self.reader = reader
        self.clock = clock
        self.policy = policy_of(trace.config)
        self.mapper = EventMapper()
        self._restart()

    def _restart(self) -> None:
        known = WorkingSet(self.mapper, self.policy, hosts_max=100)
        self.scribe = Scribe(self.store, known, self.clock)

    def run(self) -> Verdict:
        verdict = Verdict(self.trace)
        last: dict[str, Any] = {}
        for line in self.trace.lines:
            if "state" in line:
                verdict.difference = self._compare_state(line, last)
            else:
                operation = line["op"]
                if not self.knows(operation):
                    verdict.stopped_at = operation
                    break
                last = line
                verdict.reached += 1
                verdict.steps[operation] = verdict.steps.get(operation, 0) + 1
                verdict.difference = self._compare_answer(line)
                if verdict.ok:
                    verdict.passed[operation] = verdict.passed.get(operation, 0) + 1
            if not verdict.ok:
                break
        if verdict.ok:
            verdict.difference = self._compare_rebuild(last)
        return verdict

    @staticmethod
    def knows(operation: str) -> bool:
        return operation in {*COMMANDS, *SWEEPS, *QUESTIONS, "restart", "construct"}

    def _compare_answer(self, line: dict[str, Any]) -> Difference | None:
        self.clock.set(line["now"])
        try:
            got: Any = {"ok": original_words(self._perform(line["op"], line["args"], line["now"]))}
        except Refusal as refusal:
            got = {"err": OURS.get(refusal.code, refusal.code)}
        expected = {key: line[key] for key in ("ok", "err") if key in line}
        if got == expected:
            return None
        return Difference(line["i"], line["op"], line["args"], expected, got)

    def _perform(self, operation: str, args: dict[str, Any], now: int) -> Any:
        if operation == "restart":
            return self._restart()
        if operation == "construct":
            policy_of(args["options"])
            return None
        if operation in QUESTIONS:
            return QUESTIONS[operation](args, self.reader, now, self.policy)
        if operation in COMMANDS:
            return self._execute(COMMANDS[operation](args))
        total = 0
        for command in SWEEPS[operation]:
            total = 0
            while done := self._execute(command):
                total += done
        return total

    def _execute(self, command: Command) -> Any:
        outcome = self.scribe.run([Request(command, Meta("conformance", "test"))])[0]
        if outcome.refusal is not None:
            raise outcome.refusal
        return outcome.answer

    def _compare_state(self, line: dict[str, Any], last: dict[str, Any]) -> Difference | None:
        got, expected = observed_state(self.reader), line["state"]
        for part in expected:
            if got[part] != expected[part]:
                return Difference(
                    line["after"], last["op"], f"state.{part}", expected[part], got[part]
                )
        return None

    def _compare_rebuild(self, last: dict[str, Any]) -> Difference | None:
        """Every projection is what the log folds to."""
        found = differing_table(self.reader)
        if found is None:
            return None
        table, live, folded = found
        return Difference(last.get("i", 0), last.get("op", ""), table, live, folded)


def replay_on_postgres(trace: Trace, dsn: str) -> Verdict:
    """Replay on a migrated database, which is emptied first."""
    clock = VirtualClock(trace.start)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(EMPTY)
    store = PostgresStore(dsn)
    try:
        return Replay(trace, store, store, clock).run()
    finally:
        store.close()


def replay_in_memory(trace: Trace) -> Verdict:
    clock = VirtualClock(trace.start)
    store = MemoryStore()
    return Replay(trace, store, store, clock).run()


def replay_all_on_postgres(traces: Sequence[Trace]) -> list[Verdict]:
    """Replay on a throw-away database of the test server or an embedded one."""
    url = os.environ.get("TENURE_TEST_DATABASE_URL")
    with tempfile.TemporaryDirectory() as folder, open_server(url, Path(folder)) as server:
        name = f"tenure_conformance_{os.getpid()}"
        dsn = create_database(server, name)
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                migrate.apply(connection)
            return [replay_on_postgres(trace, dsn) for trace in traces]
        finally:
            drop_database(server, name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 only if everything reached passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[VECTORS])
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--store", choices=("memory", "postgres", "both"), default="both")
    chosen = parser.parse_args(arguments)
    traces, console, passed = list(find_traces(chosen.folders)), Console(), True
    if chosen.store in ("memory", "both"):
        console.rule("in memory")
        verdicts = [replay_in_memory(trace) for trace in traces]
        passed = report(verdicts, console, whole=chosen.whole)
    if chosen.store in ("postgres", "both"):
        console.rule("on PostgreSQL")
        verdicts = replay_all_on_postgres(traces)
        passed = report(verdicts, console, whole=chosen.whole) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
