"""Load on the log writer from many submitters, and what came of it."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from adapters.clock import SystemClock
from adapters.entry import Meta
from adapters.postgres.store import PostgresStore
from app.processor import own_processor
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import LogWriter
from domain.ids import HostId
from domain.relay.assign import Assign
from domain.relay.command import Command
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.placement import Grant
from domain.relay.policy import Policy

RUNS = 5
SECONDS = 1.5
WARM_UP_SECONDS = 1.0
CELLS = 24
CAPACITY_UNITS = 1_000_000
"""Ample: every second host goes to the one cell of its region."""
SUBMITTED_AT_ONCE = 1_000
META = Meta("bench", "bench")

Work: TypeAlias = Callable[[int, int], Iterator[Command]]
"""The commands of one unit of work, by submitter and number."""


@dataclass(frozen=True)
class Rate:
    """A rate and its latencies."""

    per_second: float
    p50_ms: float = 0
    p99_ms: float = 0

    @classmethod
    def of(cls, latencies: list[float], seconds: float) -> "Rate":
        ordered = sorted(latencies)
        p50, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        return cls(len(ordered) / seconds, p50 * 1_000, p99 * 1_000)

    @classmethod
    def median(cls, rates: "Sequence[Rate]") -> "Rate":
        return cls(
            statistics.median(it.per_second for it in rates),
            statistics.median(it.p50_ms for it in rates),
            statistics.median(it.p99_ms for it in rates),
        )

    def times(self, count: int) -> "Rate":
        """The rate of what each one carries `count` of."""
        return Rate(self.per_second * count, self.p50_ms, self.p99_ms)


def interleaved(*measures: Callable[[], Rate]) -> list[list[Rate]]:
    """The runs of each measure, taken in turn: a drift of the machine hits all of them."""
    rounds = [[measure() for measure in measures] for _ in range(RUNS)]
    return [list(runs) for runs in zip(*rounds, strict=True)]


def ratio(runs: Sequence[Rate], beside: Sequence[Rate]) -> float:
    """The median of how much faster each run was than the one taken beside it."""
    pairs = zip(runs, beside, strict=True)
    return statistics.median(one.per_second / other.per_second for one, other in pairs)


@contextmanager
def as_served() -> Iterator[None]:
    """This process on one processor, as `tenure serve` runs."""
    with TemporaryDirectory() as folder, own_processor(Path(folder)):
        yield


def drive(submitters: int, seconds: float, once: Callable[[int, int], Awaitable[None]]) -> Rate:
    """Each submitter does one unit of work after the other for some seconds."""

    async def run() -> Rate:
        latencies, now = list[float](), time.perf_counter
        begun = now()
        end = begun + seconds

        async def submit(submitter: int) -> None:
            number = 0
            while (started := now()) < end:
                await once(submitter, number)
                latencies.append(now() - started)
                number += 1

        await asyncio.gather(*(submit(number) for number in range(submitters)))
        return Rate.of(latencies, now() - begun)

    with as_served():
        return asyncio.run(run())


def fleet(cells: int = CELLS, capacity_units: int = CAPACITY_UNITS) -> ReconcileCells:
    """Cells, one of them alone in its region: hosts that prefer that region all go there."""
    return ReconcileCells(
        tuple(
            CellSettings(
                f"cell-{number:02}",
                f"https://cell-{number:02}.bench.test",
                capacity_units,
                "us-central1" if number else "asia-east2",
            )
            for number in range(cells)
        )
    )


class Bench:
    """A writer on a database with the fleet in place."""

    def __init__(self, dsn: str, cells: int = CELLS) -> None:
        self.store = PostgresStore(dsn)
        policy = Policy(require_live_cells=False)
        self.writer = LogWriter(self.store, SystemClock(), policy, Telemetry())
        self.writer.start()
        self.do(fleet(cells))

    def do(self, command: Command) -> object:
        return self.do_all([command])[0]

    def do_all(self, commands: Iterable[Command]) -> list[object]:
        """Many at once, in order; what they answered."""
        answers, left = list[object](), iter(commands)
        while some := list(islice(left, SUBMITTED_AT_ONCE)):
            for future in [self.writer.submit(Request(it, META)) for it in some]:
                outcome = future.result()
                assert outcome.refusal is None, outcome.refusal
                answers.append(outcome.answer)
        return answers

    def place_hosts(self, numbers: Iterable[int]) -> dict[HostId, str]:
        """Give each host a place; where it is."""
        hosts = [host(number) for number in numbers]
        cells = {}
        for who, grant in zip(hosts, self.do_all(map(Assign, hosts)), strict=True):
            assert isinstance(grant, Grant)
            cells[who] = grant.cell_id
        return cells

    def close(self) -> None:
        self.writer.stop()
        self.store.close()

    def measure(self, submitters: int, work: Work, seconds: float = SECONDS) -> Rate:
        execute = self.writer.execute

        async def once(submitter: int, number: int) -> None:
            for command in work(submitter, number):
                outcome = await execute(Request(command, META))
                if outcome.refusal is not None:
                    raise outcome.refusal

        return drive(submitters, seconds, once)


def placing(numbers: Iterator[int]) -> Work:
    """Places new hosts, every second one in the region that has one cell."""

    def place(_submitter: int, _number: int) -> Iterator[Command]:
        number = next(numbers)
        yield Assign(host(number), "asia-east2" if number % 2 else "us-central1")

    return place


def sticking(hosts: int) -> Work:
    """Asks again for the places that these hosts hold."""

    def stick(submitter: int, number: int) -> Iterator[Command]:
        yield Assign(host((submitter * 1_009 + number) % hosts))

    return stick


def host(number: int) -> HostId:
    return HostId(f"user-{number:06}", f"host{number:012}")
