"""What must not grow with what a command does not touch: cells, and leases of the same host."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.command import Command
from tests.bench.footprint import event_bytes
from tests.bench.load import WARM_UP_SECONDS, Bench, Rate, host, interleaved, placing, ratio
from tests.bench.result import Bar, Case

SUBMITTERS = 64
CELLS_USUAL = 24
CELLS_SHARE_MIN = {4: None, 24: None, 128: 0.95, 400: None, 1_000: 0.9}
"""By the number of cells: the least share of the rate with the usual number."""
CELLS_WEIGHED, EVENT_BYTES_MAX = 128, 700
LEASES_SHARE_MIN = {0: None, 100: None, 300: None, 900: 0.8}
"""By the number of other leases a host holds: the least share of the rate with none."""


def growth_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    yield from many_cells(new_database)
    yield from many_leases(new_database())


def many_cells(new_database: Callable[[], str]) -> Iterator[Case]:
    """New hosts, on fleets of different sizes."""
    dsns = {cells: new_database() for cells in CELLS_SHARE_MIN}
    benches = {cells: Bench(dsn, cells) for cells, dsn in dsns.items()}
    measures = [partial(it.measure, SUBMITTERS, placing(count())) for it in benches.values()]
    for measure in measures:
        measure(seconds=WARM_UP_SECONDS)
    runs = dict(zip(benches, interleaved(*measures), strict=True))
    for bench in benches.values():
        bench.close()
    for cells, least in CELLS_SHARE_MIN.items():
        bars, notes = [], []
        if least is not None:
            share = ratio(runs[cells], runs[CELLS_USUAL])
            bars.append(Bar(f"of that with {CELLS_USUAL} cells", share, at_least=least))
        size = event_bytes(dsns[cells])
        if cells == CELLS_WEIGHED:
            bars.append(Bar("bytes an event", size, at_most=EVENT_BYTES_MAX))
        else:
            notes.append(f"{size:,.0f} bytes an event")
        name = f"place, {SUBMITTERS} submitters, {cells:,} cells"
        yield Case(name, Rate.median(runs[cells]), tuple(bars), tuple(notes))


def many_leases(dsn: str) -> Iterator[Case]:
    """Activity pairs, on hosts that hold other activities: each kind has hosts of its own."""
    bench = Bench(dsn)
    cells = bench.place_hosts(range(SUBMITTERS * len(LEASES_SHARE_MIN)))

    def pairs(first: int, submitter: int, number: int) -> Iterator[Command]:
        who = host(first + submitter)
        yield AcquireActivity(who, f"invite:{number}", "invite", cells[who])
        yield ReleaseActivity(who, f"invite:{number}")

    measures = []
    for kind, leases in enumerate(LEASES_SHARE_MIN):
        first = kind * SUBMITTERS
        hosts = [host(first + submitter) for submitter in range(SUBMITTERS)]
        bench.do_all(
            AcquireActivity(who, f"splice:{number}", "splice", cells[who])
            for number in range(leases)
            for who in hosts
        )
        measures.append(partial(bench.measure, SUBMITTERS, partial(pairs, first)))
    for measure in measures:
        measure(seconds=WARM_UP_SECONDS)
    runs = dict(zip(LEASES_SHARE_MIN, interleaved(*measures), strict=True))
    bench.close()
    for leases, least in LEASES_SHARE_MIN.items():
        bars = []
        if least is not None:
            share = ratio(runs[leases], runs[0])
            bars.append(Bar("of that with none", share, at_least=least))
        name = f"acquire + release beside {leases} leases"
        yield Case(name, Rate.median(runs[leases]), tuple(bars))
