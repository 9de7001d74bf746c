"""The log: rebuilding every projection, loading one long stream."""

import time
from collections.abc import Callable, Iterator

import psycopg

from adapters.application import PostgresSnapshots, TenureLog
from adapters.clock import SystemClock
from adapters.mapper import EventMapper
from adapters.postgres.rebuild import Rebuild
from adapters.postgres.recorder import PostgresRecorder
from adapters.postgres.store import PostgresStore
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.command import Command
from domain.relay.control import ActivateControl
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from projections.catalogue import PROJECTIONS
from tests.bench.load import META, RUNS, Rate, fleet, host
from tests.bench.result import Case

EVENTS = 300_000
HOSTS = EVENTS // 10
PAIRS_PER_HOST = 4
STREAM_EVENTS = 1_000
LOADS = 50
BATCH = 64


class Filler:
    """Fills a log by the writer's own hand."""

    def __init__(self, dsn: str) -> None:
        self.store = PostgresStore(dsn)
        known = WorkingSet(EventMapper(), Policy(require_live_cells=False), HOSTS)
        self.scribe = Scribe(self.store, known, SystemClock())
        self.run([fleet()])

    def run(self, commands: list[Command]) -> list[object]:
        answers: list[object] = []
        while len(answers) < len(commands):
            batch = commands[len(answers) : len(answers) + BATCH]
            for outcome in self.scribe.run([Request(it, META) for it in batch]):
                assert outcome.refusal is None
                answers.append(outcome.answer)
        return answers


def log_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    yield rebuilding(new_database())
    yield from loading(new_database())


def rebuilding(dsn: str) -> Case:
    """A log of placements, attachments and activities: one, one and eight for each host."""
    filler = Filler(dsn)
    hosts = [host(number) for number in range(HOSTS)]
    cells: dict[HostId, str] = {}
    for who, grant in zip(hosts, filler.run([Assign(it) for it in hosts]), strict=True):
        assert isinstance(grant, Grant)
        cells[who] = grant.cell_id
    filler.run([ActivateControl(who, cells[who], 1, 1) for who in hosts])
    for number in range(PAIRS_PER_HOST):
        activity_id = f"splice:{number}"
        filler.run([AcquireActivity(who, activity_id, "splice", cells[who]) for who in hosts])
        filler.run([ReleaseActivity(who, activity_id) for who in hosts])
    events = filler.store.head().position
    filler.store.close()
    rates = [Rate(events / rebuild(dsn), 0, 0) for _ in range(RUNS)]
    note = f"{events:,} events, all {len(PROJECTIONS)} projections, compared and switched"
    return Case("rebuild, events", Rate.median(rates), per_second_min=60_000, notes=[note])


def rebuild(dsn: str) -> float:
    """Seconds of one rebuild, from the start to the switch."""
    started = time.perf_counter()
    rebuilt = Rebuild(dsn, PROJECTIONS).run()
    assert rebuilt.differences == ()
    return time.perf_counter() - started


def loading(dsn: str) -> Iterator[Case]:
    """One host's stream, cold, through the library's repository."""
    filler, who = Filler(dsn), host(1)
    (grant,) = filler.run([Assign(who)])
    assert isinstance(grant, Grant)
    for number in range((STREAM_EVENTS - 1) // 2 + 1):
        activity_id = f"splice:{number}"
        acquire = AcquireActivity(who, activity_id, "splice", grant.cell_id)
        filler.run([acquire, ReleaseActivity(who, activity_id)])
    filler.store.close()
    recorder, snapshots = PostgresRecorder(dsn), PostgresSnapshots(dsn)
    with TenureLog(recorder) as log:
        yield Case(f"load a stream of {STREAM_EVENTS:,} events", load(log, who))
    with TenureLog(recorder, snapshots) as log:
        log.snapshot(who)
        yield Case("the same with a snapshot", load(log, who))
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (1,)


def load(log: TenureLog, who: HostId) -> Rate:
    latencies, started = [], time.perf_counter()
    for _ in range(LOADS):
        begun = time.perf_counter()
        held = log.held(who)
        assert held is not None
        latencies.append(time.perf_counter() - begun)
    return Rate.of(latencies, time.perf_counter() - started)
