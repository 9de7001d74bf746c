"""What must not grow with the log: placing, sticky grants, starting."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median

from app.writer import HOSTS_CACHED_MAX
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.command import Command
from tests.bench.load import WARM_UP_SECONDS, Bench, Rate, interleaved, placing, ratio, sticking
from tests.bench.result import Bar, Case

SUBMITTERS = 64
HOSTS_FEW, HOSTS_MANY = 10_000, 300_000
HOSTS_STICKY = 2_000
EVENTS = 1_000_000
STARTS = 3
GIB = 2**30


def size_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    dsn = new_database()
    bench = Bench(dsn)
    cells = bench.place_hosts(range(HOSTS_MANY))
    yield from hosts(new_database, bench)
    bench.do_all(filling(cells, EVENTS - bench.store.head().position))
    position = bench.store.head().position
    assert position >= EVENTS
    bench.close()
    yield starting(dsn, position)


def hosts(new_database: Callable[[], str], many: Bench) -> Iterator[Case]:
    """The same hosts asked for again, then new ones, in a small and in a large log."""
    few = Bench(new_database())
    few.place_hosts(range(HOSTS_FEW))
    stick = sticking(HOSTS_STICKY)
    for bench in (few, many):
        bench.measure(SUBMITTERS, stick, WARM_UP_SECONDS)
    beside, runs = interleaved(*(partial(it.measure, SUBMITTERS, stick) for it in (few, many)))
    few.close()
    yield compared("sticky", runs, beside)
    everyone = partial(many.measure, SUBMITTERS, sticking(HOSTS_MANY))
    (runs,) = interleaved(everyone)
    yield Case(f"sticky, of all {HOSTS_MANY:,} hosts in turn", Rate.median(runs))
    place = placing(count(HOSTS_MANY))
    beside, runs = interleaved(
        partial(place_in_small_log, new_database), partial(many.measure, SUBMITTERS, place)
    )
    yield compared("place", runs, beside)


def compared(name: str, runs: list[Rate], beside: list[Rate]) -> Case:
    bar = Bar(f"of that with {HOSTS_FEW:,}", ratio(runs, beside), at_least=0.9)
    name = f"{name}, {SUBMITTERS} submitters, {HOSTS_MANY:,} hosts in the log"
    return Case(name, Rate.median(runs), (bar,))


def place_in_small_log(new_database: Callable[[], str]) -> Rate:
    """In a fresh log: placing would make one that is used again as large as the other."""
    bench = Bench(new_database())
    bench.place_hosts(range(HOSTS_FEW))
    rate = bench.measure(SUBMITTERS, placing(count(HOSTS_FEW)))
    bench.close()
    return rate


def filling(cells: dict[HostId, str], events: int) -> Iterator[Command]:
    """Commands that add at least so many events, spread over all hosts."""
    for number in range(0, events, 2 * len(cells)):
        for index, (who, cell_id) in enumerate(cells.items()):
            if number + 2 * index >= events:
                return
            yield AcquireActivity(who, f"splice:{number}", "splice", cell_id)
            yield ReleaseActivity(who, f"splice:{number}")


@dataclass(frozen=True)
class Start:
    """How long a process took until its writer gave its first answer, and how large it became."""

    seconds: float
    resident_bytes: int


def starting(dsn: str, events: int) -> Case:
    """A process from nothing; the last one goes on until it knows as many hosts as it may."""
    started = [start(dsn, 0) for _ in range(STARTS - 1)] + [start(dsn, HOSTS_CACHED_MAX)]
    bars = (
        Bar("s to the first answer", median(it.seconds for it in started), at_most=3),
        Bar("GiB resident", started[-1].resident_bytes / GIB, at_most=1),
    )
    notes = (f"{HOSTS_CACHED_MAX:,} hosts in memory",)
    return Case(f"start of a writer on {events:,} events", None, bars, notes)


def start(dsn: str, hosts_met: int) -> Start:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "tests.bench.start", dsn, str(hosts_met)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "answered\n"
        seconds = time.perf_counter() - begun
        resident_bytes = int(process.stdout.readline())
    assert process.returncode == 0
    return Start(seconds, resident_bytes)
