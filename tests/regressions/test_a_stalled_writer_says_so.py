"""A writer that is kept from the log says so, and keeps nobody waiting for long.

While another session held a lock on the log, a command once waited over 50 seconds, `/readyz` said
that the writer ran, and the first command after the release was refused.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import app.health
from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.ports import Unavailable
from adapters.postgres import statements
from adapters.postgres.store import PostgresStore
from adapters.streams import host_stream
from app.outcome import Outcome
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import COMMANDS_PER_BATCH_MAX, LogWriter
from domain.relay.assign import Assign
from domain.relay.policy import Policy
from tests.fold import check_log_and_tables
from tests.http.running import Running, running
from tests.waiting import until
from tests.writer.commands import FLEET, HOSTS
from tests.writer.cutting_proxy import CuttingProxy

NOW = 1_700_000_000_000
SECONDS_MAX = 20
TABLE_LOCK = "LOCK TABLE log IN EXCLUSIVE MODE"
LOCKS = [TABLE_LOCK, "LOCK TABLE log IN ACCESS EXCLUSIVE MODE", statements.LOCK]
ALWAYS = 1_000_000


class Desk:
    """A writer with a fleet, whose commands have little time."""

    def __init__(self, dsn: str, seconds_max: float) -> None:
        self.store = PostgresStore(dsn)
        policy, self.telemetry = Policy(require_live_cells=False), Telemetry()
        self.writer = LogWriter(
            self.store, VirtualClock(NOW), policy, self.telemetry, command_seconds_max=seconds_max
        )
        self.writer.start()
        for command in (FLEET, Assign(HOSTS[-1]), Assign(HOSTS[-1])):
            self.submit(command).result(SECONDS_MAX)

    def submit(self, command: Any) -> "Future[Outcome]":
        return self.writer.submit(Request(command, Meta("c", "test")))

    def close(self) -> None:
        self.writer.stop()
        self.store.close()


@pytest.fixture
def proxy(database: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(database) as proxy:
        yield proxy


@pytest.fixture
def desk(proxy: CuttingProxy) -> Iterator[Desk]:
    desk = Desk(proxy.dsn, seconds_max=0.5)
    yield desk
    desk.close()


@pytest.fixture
def patient(proxy: CuttingProxy) -> Iterator[Desk]:
    desk = Desk(proxy.dsn, seconds_max=SECONDS_MAX)
    yield desk
    desk.close()


def until_one_tries_again(connection: psycopg.Connection[Any]) -> None:
    """Wait until a session has waited for a lock in this database at least twice."""
    seen: dict[int, set[Any]] = {}

    def twice() -> bool:
        rows = connection.execute(
            "SELECT pid, waitstart FROM pg_locks WHERE waitstart IS NOT NULL AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchall()
        for pid, started in rows:
            seen.setdefault(pid, set()).add(started)
        return any(len(it) > 1 for it in seen.values())

    until(twice)


@pytest.mark.parametrize("lock", LOCKS)
def test_who_waited_its_time_is_refused_and_the_next_is_served(
    desk: Desk, database: str, lock: str
) -> None:
    with psycopg.connect(database) as blocker:
        blocker.execute(lock.encode())
        futures = [desk.submit(Assign(host)) for host in HOSTS * 4]
        assert len(futures) > 2 * COMMANDS_PER_BATCH_MAX
        for future in futures:
            with pytest.raises(Unavailable):
                future.result(SECONDS_MAX)
    assert desk.submit(Assign(HOSTS[0])).result(SECONDS_MAX).answer.epoch == 1
    check_log_and_tables(desk.store)
    placed = {row[1] for row in desk.store.dump("assignments")}
    assert placed == {HOSTS[0].relay_host_id, HOSTS[-1].relay_host_id}


@pytest.mark.parametrize("lock", LOCKS)
def test_who_has_time_left_is_served_after_the_release(
    patient: Desk, database: str, lock: str
) -> None:
    with psycopg.connect(database) as blocker:
        blocker.execute(lock.encode())
        futures = [patient.submit(Assign(host)) for host in HOSTS]
        until_one_tries_again(blocker)
    assert {it.result(SECONDS_MAX).answer.epoch for it in futures} == {1}
    check_log_and_tables(patient.store)


def test_who_waits_for_a_server_that_is_away_is_refused(desk: Desk, proxy: CuttingProxy) -> None:
    proxy.refusals = ALWAYS
    proxy.armed.set()
    futures = [desk.submit(Assign(host)) for host in HOSTS * 4]
    for future in futures:
        with pytest.raises(Unavailable):
            future.result(SECONDS_MAX)
    assert proxy.cuts == 1
    proxy.refusals = 0
    assert desk.submit(Assign(HOSTS[0])).result(SECONDS_MAX).answer.epoch == 1
    check_log_and_tables(desk.store)


def test_a_sent_commit_is_found_out_behind_a_lock(
    patient: Desk, proxy: CuttingProxy, database: str
) -> None:
    proxy.refusals = ALWAYS
    proxy.armed.set()
    future = patient.submit(Assign(HOSTS[0]))
    until(lambda: proxy.cuts == 1)
    with psycopg.connect(database) as blocker:
        blocker.execute(LOCKS[1].encode())
        proxy.refusals = 0
        until_one_tries_again(blocker)
        assert not future.done()
    assert future.result(SECONDS_MAX).answer.epoch == 1
    entries = patient.store.read(0, 100)
    assert [it.stream for it in entries].count(host_stream(HOSTS[0])) == 1


def test_the_metric_counts_only_while_somebody_waits(patient: Desk, database: str) -> None:
    def seconds() -> float:
        told = patient.telemetry.registry.get_sample_value("tenure_writer_stalled_seconds")
        assert told is not None
        return told

    assert seconds() == 0
    with psycopg.connect(database) as blocker:
        blocker.execute(TABLE_LOCK)
        future = patient.submit(Assign(HOSTS[0]))
        until(lambda: seconds() > 0)
    future.result(SECONDS_MAX)
    assert seconds() == 0


def test_a_service_whose_writer_is_stalled_is_not_ready(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.health, "STALLED_SECONDS_MAX", 0.001)

    def writer(edge: Running) -> dict[str, Any]:
        listed = edge.client(None).get("/readyz?verbose").json()["checks"]
        return next(it for it in listed if it["name"] == "writer")

    with running(database, tmp_path) as edge, ThreadPoolExecutor() as pool:
        edge.live_cell()
        assert writer(edge) == {"name": "writer", "passed": True, "detail": "runs"}
        with psycopg.connect(database) as blocker:
            blocker.execute(TABLE_LOCK)
            asked = pool.submit(edge.assign)
            until(lambda: not writer(edge)["passed"])
            assert "none was committed" in writer(edge)["detail"]
            assert edge.client(None).get("/readyz").status_code == 503
        assert asked.result().status_code == 200
        assert writer(edge)["passed"]
