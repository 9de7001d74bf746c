"""The log writer: placing, sticky grants, activity pairs, renewals."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice

import psycopg

from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity, RenewControl
from domain.relay.command import Command
from domain.relay.renewals import Renewal, RenewControls, Renewed
from tests.bench.baseline import BareLoop
from tests.bench.footprint import event_bytes, fullest_cell, wal_bytes
from tests.bench.load import (
    CAPACITY_UNITS,
    WARM_UP_SECONDS,
    Bench,
    Rate,
    as_served,
    host,
    interleaved,
    placing,
    ratio,
    sticking,
)
from tests.bench.raw import raw_inserts
from tests.bench.result import Bar, Case

HOSTS_STICKY = 2_000
HOSTS_RENEWED = 100_000
HOSTS_WEIGHED = 5_000
BULK_ITEMS = 2_000
PENDING = "control-pending:1"


def writer_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    """Each kind on a database of its own."""
    yield from placements(new_database)
    yield from holding(new_database())
    yield from renewing(new_database)


def placements(new_database: Callable[[], str]) -> Iterator[Case]:
    """New hosts, beside the bare loop."""
    dsn, numbers, bare_numbers = new_database(), count(), count()
    bench, bare = Bench(dsn), BareLoop(new_database())
    place = placing(numbers)
    for submitters, least, p99_ms_max in ((16, 0.95, None), (64, 0.85, 15)):
        bench.measure(submitters, place, WARM_UP_SECONDS)
        bare.measure(submitters, bare_numbers, WARM_UP_SECONDS)
        bare_runs, runs = interleaved(
            partial(bare.measure, submitters, bare_numbers),
            partial(bench.measure, submitters, place),
        )
        yield Case(f"bare group-commit loop, {submitters} submitters", Rate.median(bare_runs))
        rate = Rate.median(runs)
        bars = [Bar("of the bare loop", ratio(runs, bare_runs), at_least=least)]
        if p99_ms_max is not None:
            bars.append(Bar("ms p99", rate.p99_ms, at_most=p99_ms_max))
        yield Case(f"place, {submitters} submitters", rate, tuple(bars))
    wal = wal_bytes(bench, dsn, islice(numbers, HOSTS_WEIGHED))
    bench.close()
    bare.close()
    fullest = fullest_cell(dsn)
    assert fullest <= CAPACITY_UNITS
    notes = (
        f"{event_bytes(dsn):,.0f} bytes an event, {wal:,.0f} bytes of WAL",
        f"fullest cell {fullest:,} of {CAPACITY_UNITS:,} units",
    )
    yield Case("a placement", notes=notes)


def holding(dsn: str) -> Iterator[Case]:
    bench = Bench(dsn)
    cells = bench.place_hosts(range(HOSTS_STICKY))

    def pair(submitter: int, number: int) -> Iterator[Command]:
        who = host(submitter)
        yield AcquireActivity(who, f"invite:{number}", "invite", cells[who])
        yield ReleaseActivity(who, f"invite:{number}")

    stick = sticking(HOSTS_STICKY)
    for work in (stick, pair):
        bench.measure(64, work, WARM_UP_SECONDS)
    sticky, pairs = interleaved(partial(bench.measure, 64, stick), partial(bench.measure, 64, pair))
    yield Case("sticky, 64 submitters", Rate.median(sticky))
    yield Case("acquire + release, 64 submitters", Rate.median(pairs))
    bench.close()


def renewing(new_database: Callable[[], str]) -> Iterator[Case]:
    """Renewals one by one, and in bulk beside raw inserts."""
    dsn, raw_dsn = new_database(), new_database()
    bench = Bench(dsn)
    cells = bench.place_hosts(range(HOSTS_RENEWED))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")

    def renew(submitter: int, number: int) -> Iterator[Command]:
        who = host((submitter * 1_009 + number) % HOSTS_RENEWED)
        yield RenewControl(who, PENDING, cells[who], int(time.time() * 1_000) + 100_000)

    (runs,) = interleaved(partial(bench.measure, 64, renew))
    yield Case("renew, 64 submitters", Rate.median(runs))

    by_cell: dict[str, list[HostId]] = {}
    for who, cell_id in cells.items():
        by_cell.setdefault(cell_id, []).append(who)
    bulks = [
        (cell_id, hosts[start : start + BULK_ITEMS])
        for cell_id, hosts in by_cell.items()
        for start in range(0, len(hosts), BULK_ITEMS)
    ]
    renew_all(bench, bulks)
    raw_1, raw_32, runs = interleaved(
        partial(raw_inserts, raw_dsn, 1),
        partial(raw_inserts, raw_dsn, 32),
        partial(renew_all, bench, bulks),
    )
    bench.close()
    yield Case("raw inserts, 1 thread", Rate.median(raw_1))
    yield Case("raw inserts, 32 threads", Rate.median(raw_32))
    bar = Bar("of raw inserts, 32 threads", ratio(runs, raw_32), at_least=7.5)
    yield Case(f"renew in bulk of up to {BULK_ITEMS:,}", Rate.median(runs), (bar,))


def renew_all(bench: Bench, bulks: list[tuple[str, list[HostId]]]) -> Rate:
    """Renew every host once, a bulk at a time."""
    with as_served():
        latencies, renewed, started = [], 0, time.perf_counter()
        for cell_id, hosts in bulks:
            begun = time.perf_counter()
            expires_at = int(time.time() * 1_000) + 100_000
            items = tuple(Renewal(*who, PENDING, expires_at) for who in hosts)
            answer = bench.do(RenewControls(cell_id, items))
            assert isinstance(answer, Renewed)
            assert not answer.refused
            renewed += answer.renewed
            latencies.append(time.perf_counter() - begun)
        seconds = time.perf_counter() - started
    rate = Rate.of(latencies, seconds)
    return Rate(renewed / seconds, rate.p50_ms, rate.p99_ms)
