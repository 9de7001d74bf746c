"""The log: rebuilding every projection, loading one long stream."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import psycopg

from adapters.application import PostgresSnapshots, TenureLog
from adapters.postgres.rebuild import Rebuild
from adapters.postgres.recorder import PostgresRecorder
from adapters.streams import host_stream
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.command import Command
from domain.relay.control import ActivateControl
from projections.catalogue import PROJECTIONS
from tests.bench.load import Bench, Rate, host, interleaved, ratio
from tests.bench.raw import raw_inserts
from tests.bench.result import Bar, Case

HOSTS = 20_000
PAIRS_PER_HOST = 4
STREAM_EVENTS = 1_000
LOADS = 50
WITHOUT_SNAPSHOT_MS_MAX, WITH_SNAPSHOT_MS_MAX = 5, 1.5
COUNT = "SELECT count(*) FROM log WHERE stream = %s"


def log_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    yield rebuilding(new_database(), new_database())
    yield from loading(new_database())


def rebuilding(dsn: str, raw_dsn: str) -> Case:
    """A log of placements, attachments and activities: one, one and eight for each host."""
    bench = Bench(dsn)
    cells = bench.place_hosts(range(HOSTS))
    bench.do_all(ActivateControl(who, cell_id, 1, 1) for who, cell_id in cells.items())
    for number in range(PAIRS_PER_HOST):
        bench.do_all(pairs(cells, number))
    events = bench.store.head().position
    bench.close()
    raw_32, runs = interleaved(
        partial(raw_inserts, raw_dsn, 32), lambda: Rate(events / rebuild(dsn))
    )
    bar = Bar("of raw inserts, 32 threads", ratio(runs, raw_32), at_least=10)
    note = f"{events:,} events, all {len(PROJECTIONS)} projections, compared and switched"
    return Case("rebuild, events", Rate.median(runs), (bar,), (note,))


def pairs(cells: dict[HostId, str], number: int) -> Iterator[Command]:
    """An activity of each host begins, then each ends."""
    for who, cell_id in cells.items():
        yield AcquireActivity(who, f"splice:{number}", "splice", cell_id)
    for who in cells:
        yield ReleaseActivity(who, f"splice:{number}")


def rebuild(dsn: str) -> float:
    """Seconds of one rebuild, from the start to the switch."""
    started = time.perf_counter()
    rebuilt = Rebuild(dsn, PROJECTIONS).run()
    assert rebuilt.differences == ()
    return time.perf_counter() - started


def loading(dsn: str) -> Iterator[Case]:
    """One host's stream, cold, through the library's repository."""
    bench = Bench(dsn)
    cells = bench.place_hosts([1])
    for number in range((STREAM_EVENTS - 1) // 2):
        bench.do_all(pairs(cells, number))
    bench.do(AcquireActivity(host(1), "splice:last", "splice", cells[host(1)]))
    bench.close()
    recorder, snapshots = PostgresRecorder(dsn), PostgresSnapshots(dsn)
    with psycopg.connect(dsn) as connection:
        asked = connection.execute(COUNT, [host_stream(host(1))])
        assert asked.fetchone() == (STREAM_EVENTS,)
    with TenureLog(recorder) as cold, TenureLog(recorder, snapshots) as log:
        log.snapshot(host(1))
        runs, snapshot_runs = interleaved(partial(load, cold, host(1)), partial(load, log, host(1)))
    yield loaded(f"load a stream of {STREAM_EVENTS:,} events", runs, WITHOUT_SNAPSHOT_MS_MAX)
    yield loaded("the same with a snapshot", snapshot_runs, WITH_SNAPSHOT_MS_MAX)


def loaded(name: str, runs: list[Rate], ms_max: float) -> Case:
    rate = Rate.median(runs)
    return Case(name, rate, (Bar("ms median", rate.p50_ms, at_most=ms_max),))


def load(log: TenureLog, who: HostId) -> Rate:
    latencies, started = [], time.perf_counter()
    for _ in range(LOADS):
        begun = time.perf_counter()
        held = log.held(who)
        assert held is not None
        latencies.append(time.perf_counter() - begun)
    return Rate.of(latencies, time.perf_counter() - started)
