"""A sweep's answer is kept in the transaction of its last turn.

It was once stored afterwards, over another connection: when that failed, a sweep that had been done
was answered 503, and two sweeps with one key at a time got two answers.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import app.scribe
from domain.limits import ACTIVITY_LEASE_MS
from tests.http.running import NOW, Running, running
from tests.waiting import until

PATH = "/v1/sweeps/activity-leases"
KEY = {"Idempotency-Key": "k"}
HOSTS = 3


@pytest.fixture
def edge(database: str, tmp_path: Path) -> Iterator[Running]:
    """A service with hosts whose leases have run out."""
    with running(database, tmp_path) as it:
        it.live_cell()
        for number in range(HOSTS):
            assert it.assign(f"u/{number}").status_code == 200
        it.clock.set(NOW + ACTIVITY_LEASE_MS)
        yield it


def test_the_sum_is_kept_while_the_lock_is_held(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.scribe, "SWEEP_HOSTS_MAX", 1)
    with psycopg.connect(edge.dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION in_turn() RETURNS boolean LANGUAGE sql AS $$ SELECT EXISTS "
            "(SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) $$"
        )
        connection.execute("ALTER TABLE command_results ADD in_turn boolean DEFAULT in_turn()")
        first = edge.operator.post(PATH, headers=KEY)
        again = edge.operator.post(PATH, headers=KEY)
        kept = connection.execute("SELECT in_turn FROM command_results").fetchall()
    assert first.json() == {"settled": HOSTS}
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    assert kept == [(True,)]


def test_two_at_a_time_get_one_answer(edge: Running) -> None:
    with ThreadPoolExecutor() as pool, psycopg.connect(edge.dsn) as blocker:
        blocker.execute("LOCK TABLE log IN EXCLUSIVE MODE")
        asked = [pool.submit(edge.operator.post, PATH, headers=KEY) for _ in range(2)]
        until(lambda: waiting_for_the_log(blocker))
        blocker.rollback()
        answers = [it.result() for it in asked]
    assert [it.status_code for it in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert sum("Idempotency-Replayed" in it.headers for it in answers) == 1


def waiting_for_the_log(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'log'::regclass"
    ).fetchone()
    return row is not None and row[0] > 0
