"""Load on the log writer from many submitters, and what came of it."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters.clock import SystemClock
from adapters.entry import Meta
from adapters.postgres.store import PostgresStore
from app.processor import own_processor
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import LogWriter
from domain.ids import HostId
from domain.relay.command import Command
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.policy import Policy

RUNS = 3
CELLS = 24
CAPACITY_UNITS = 100_000

Work = Callable[[int, int], Iterator[Command]]
"""The commands of one unit of work, by submitter and number."""


@dataclass(frozen=True)
class Rate:
    """A rate and its latencies."""

    per_second: float
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, latencies: list[float], seconds: float) -> "Rate":
        ordered = sorted(latencies)
        p50, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        return cls(len(ordered) / seconds, p50 * 1_000, p99 * 1_000)

    @classmethod
    def median(cls, rates: "list[Rate]") -> "Rate":
        return cls(
            statistics.median(it.per_second for it in rates),
            statistics.median(it.p50_ms for it in rates),
            statistics.median(it.p99_ms for it in rates),
        )


def fleet() -> ReconcileCells:
    """24 cells, one of them alone in its region: hosts that prefer that region all go there."""
    return ReconcileCells(
        tuple(
            CellSettings(
                f"cell-{number:02}",
                f"https://cell-{number:02}.bench.test",
                CAPACITY_UNITS,
                "us-central1" if number else "asia-east2",
            )
            for number in range(CELLS)
        )
    )


class Bench:
    """A writer on a fresh database with the fleet in place."""

    def __init__(self, dsn: str) -> None:
        self.store = PostgresStore(dsn)
        policy = Policy(require_live_cells=False)
        self.writer = LogWriter(self.store, SystemClock(), policy, Telemetry())
        self.writer.start()
        self._stack = ExitStack()
        folder = self._stack.enter_context(TemporaryDirectory())
        self._stack.enter_context(own_processor(Path(folder)))  # as `tenure serve` runs
        self.do(fleet())

    def do(self, command: Command) -> object:
        outcome = self.writer.submit(Request(command, META)).result()
        assert outcome.refusal is None, outcome.refusal
        return outcome.answer

    def close(self) -> None:
        self.writer.stop()
        self.store.close()
        self._stack.close()

    def measure(self, submitters: int, seconds: float, work: Work) -> Rate:
        """Each submitter does one unit of work after the other for some seconds."""
        return asyncio.run(self._measure(submitters, seconds, work))

    async def _measure(self, submitters: int, seconds: float, work: Work) -> Rate:
        latencies: list[float] = []
        execute, now = self.writer.execute, time.perf_counter
        end = now() + seconds

        async def submit(submitter: int) -> None:
            number = 0
            while (started := now()) < end:
                for command in work(submitter, number):
                    outcome = await execute(Request(command, META))
                    if outcome.refusal is not None:
                        raise outcome.refusal
                latencies.append(now() - started)
                number += 1

        started = now()
        await asyncio.gather(*(submit(number) for number in range(submitters)))
        return Rate.of(latencies, now() - started)


META = Meta("bench", "bench")


def host(number: int) -> HostId:
    return HostId(f"user-{number:06}", f"host{number:012}")
