"""Logs to rebuild from: recorded traces driven through the scribe onto PostgreSQL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import EventMapper
from adapters.postgres.store import PostgresStore
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.command import Command
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.policy import Policy
from tests.conformance.operations import COMMANDS, SWEEPS
from tests.conformance.traces import VECTORS, read_trace

NOW = 1_754_000_000_000
TRACES = (
    "dir-11-control-supersession.jsonl",
    "dir-18-connection-telemetry.jsonl",
    "dir-19-reservations-claim-release.jsonl",
    "dir-20-reservations-debt.jsonl",
    "rnd-017-reservations.jsonl.gz",
    "rnd-025-placement.jsonl.gz",
)
"""Together they have rows in every table of every projection."""


class Fleet:
    """A scribe on a database, without checks of its answers."""

    def __init__(self, dsn: str) -> None:
        self.store = PostgresStore(dsn)
        self.clock = VirtualClock(NOW)
        known = WorkingSet(EventMapper(), Policy(require_live_cells=False), hosts_max=1_000)
        self._scribe = Scribe(self.store, known, self.clock)

    def run(self, commands: Sequence[Command]) -> None:
        requests = [Request(it, Meta("command", "test")) for it in commands]
        while requests:
            requests = requests[len(self._scribe.run(requests)) :]

    def play(self, name: str) -> None:
        """The commands of a recorded trace as far as they are known, one after another."""
        trace = read_trace(VECTORS / name)
        for line in trace.lines:
            operation = line.get("op", "resolve")
            self.clock.set(max(self.clock.now_ms(), line.get("now", 0)))
            if operation in COMMANDS:
                self.run([COMMANDS[operation](line["args"])])
            else:
                self.run(SWEEPS.get(operation, ()))

    def open_cells(self, count: int = 4) -> None:
        self.run(
            [
                ReconcileCells(
                    tuple(
                        CellSettings(f"c-{i}", f"https://c-{i}.example", 100_000, "us-central1")
                        for i in range(count)
                    ),
                    disable_missing=False,
                )
            ]
        )

    def place(self, first: int, count: int) -> None:
        """Place hosts; each begins two splices and ends one."""
        hosts = [HostId(f"user-{number}", "desktop-1") for number in range(first, first + count)]
        self.run([Assign(host, None, None) for host in hosts])
        for host in hosts:
            held = self.store.place(host)
            assert held is not None
            self.run(
                [
                    AcquireActivity(host, "splice:1", "splice", held.cell_id, None),
                    AcquireActivity(host, "splice:2", "splice", held.cell_id, None),
                    ReleaseActivity(host, "splice:1"),
                ]
            )


@contextmanager
def fleet(dsn: str) -> Iterator[Fleet]:
    it = Fleet(dsn)
    try:
        yield it
    finally:
        it.store.close()


def change(dsn: str, statement: str) -> int:
    """Change rows behind everybody's back; answers how many."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(statement.encode()).rowcount
