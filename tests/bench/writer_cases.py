"""The log writer: placing, sticky grants, activity pairs, renewals."""

import itertools
import time
from collections.abc import Callable, Iterator

import psycopg

from app.scribe import Request
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign
from domain.relay.command import Command
from domain.relay.placement import Grant
from domain.relay.renewals import Renewal, RenewControls, Renewed
from tests.bench.load import CAPACITY_UNITS, META, RUNS, Bench, Rate, host
from tests.bench.raw import raw_inserts
from tests.bench.result import Case

SECONDS = 3.0
WARM_UP_SECONDS = 1.0
HOSTS_STICKY = 2_000
HOSTS_RENEWED = 100_000
BULK_ITEMS = 2_000


def writer_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    """Measure all of it, each kind on a database of its own."""
    dsn = new_database()
    raw_1, raw_32 = raw_inserts(dsn, 1), raw_inserts(dsn, 32)
    yield Case("raw inserts, 1 thread", Rate(raw_1, 0, 0))
    yield Case("raw inserts, 32 threads", Rate(raw_32, 0, 0))
    yield from placing(new_database(), raw_32)
    yield from holding(new_database())
    yield from renewing(new_database())


def median(bench: Bench, submitters: int, work: Callable[[int, int], Iterator[Command]]) -> Rate:
    bench.measure(submitters, WARM_UP_SECONDS, work)
    return Rate.median([bench.measure(submitters, SECONDS, work) for _ in range(RUNS)])


def placing(dsn: str, raw_32: float) -> Iterator[Case]:
    bench, numbers = Bench(dsn), itertools.count()

    def place(_submitter: int, _number: int) -> Iterator[Command]:
        number = next(numbers)
        yield Assign(host(number), "asia-east2" if number % 2 else "us-central1")

    few, many = median(bench, 16, place), median(bench, 64, place)
    bench.close()
    fullest = fullest_cell(dsn)
    assert fullest <= CAPACITY_UNITS
    note = f"fullest cell {fullest:,} of {CAPACITY_UNITS:,} units: capacity was never exceeded"
    yield Case("place, 16 submitters", few, few.per_second / raw_32, per_second_min=4_500)
    yield Case(
        "place, 64 submitters",
        many,
        many.per_second / raw_32,
        per_second_min=10_000,
        p99_ms_max=15,
        ratio_min=0.5,
        notes=[note],
    )


def fullest_cell(dsn: str) -> int:
    """The most units that any event ever left on a cell."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT max((shift ->> 2)::bigint) FROM log, jsonb_array_elements("
            "convert_from(state, 'UTF8')::jsonb -> 'event' -> 'shifts') AS shift "
            "WHERE topic = 'host.placed'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def holding(dsn: str) -> Iterator[Case]:
    bench = Bench(dsn)
    cells = place_hosts(bench, HOSTS_STICKY)

    def sticky(submitter: int, number: int) -> Iterator[Command]:
        yield Assign(host((submitter * 31 + number) % HOSTS_STICKY))

    def pair(submitter: int, number: int) -> Iterator[Command]:
        who = host(submitter)
        yield AcquireActivity(who, f"invite:{number}", "invite", cells[who])
        yield ReleaseActivity(who, f"invite:{number}")

    yield Case("sticky, 64 submitters", median(bench, 64, sticky), per_second_min=12_000)
    yield Case("acquire + release, 64 submitters", median(bench, 64, pair), per_second_min=5_000)
    bench.close()


def place_hosts(bench: Bench, count: int) -> dict[HostId, str]:
    """Give each host a place; where it is."""
    cells = {}
    for start in range(0, count, 1_000):
        hosts = [host(number) for number in range(start, min(start + 1_000, count))]
        asked = [bench.writer.submit(Request(Assign(it), META)) for it in hosts]
        for it, future in zip(hosts, asked, strict=True):
            grant = future.result().answer
            assert isinstance(grant, Grant)
            cells[it] = grant.cell_id
    return cells


def renewing(dsn: str) -> Iterator[Case]:
    bench = Bench(dsn)
    cells = place_hosts(bench, HOSTS_RENEWED)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")
    pending = "control-pending:1"

    def renew(submitter: int, number: int) -> Iterator[Command]:
        who = host((submitter * 1_009 + number) % HOSTS_RENEWED)
        yield RenewControl(who, pending, cells[who], int(time.time() * 1_000) + 100_000)

    yield Case("renew, 64 submitters", median(bench, 64, renew), per_second_min=12_000)

    by_cell: dict[str, list[HostId]] = {}
    for who, cell_id in cells.items():
        by_cell.setdefault(cell_id, []).append(who)
    bulks = [
        (cell_id, hosts[start : start + BULK_ITEMS])
        for cell_id, hosts in by_cell.items()
        for start in range(0, len(hosts), BULK_ITEMS)
    ]

    rates = [renew_all(bench, bulks, pending) for _ in range(RUNS + 1)][1:]
    rate = Rate.median(rates)
    yield Case("renew in bulk of up to 2,000", rate, per_second_min=100_000)
    bench.close()


def renew_all(bench: Bench, bulks: list[tuple[str, list[HostId]]], pending: str) -> Rate:
    """Renew every host once, a bulk at a time."""
    latencies, renewed, started = [], 0, time.perf_counter()
    for cell_id, hosts in bulks:
        begun = time.perf_counter()
        expires_at = int(time.time() * 1_000) + 100_000
        items = tuple(Renewal(*who, pending, expires_at) for who in hosts)
        answer = bench.do(RenewControls(cell_id, items))
        assert isinstance(answer, Renewed)
        assert not answer.refused
        renewed += answer.renewed
        latencies.append(time.perf_counter() - begun)
    rate = Rate.of(latencies, time.perf_counter() - started)
    return Rate(renewed / (time.perf_counter() - started), rate.p50_ms, rate.p99_ms)
