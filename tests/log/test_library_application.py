"""Cold reads, snapshots and export through the library, pinned to what our writer wrote."""

from contextlib import closing
from typing import Any

import psycopg

from adapters.application import Held, PostgresSnapshots, TenureLog
from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import ChainedNotification, EventMapper
from adapters.postgres.recorder import PostgresRecorder
from adapters.postgres.store import PostgresStore
from app.scribe import SNAPSHOT_EVERY_VERSIONS, Request, Scribe
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.policy import Policy
from tests.writer.commands import FLEET

HOST = HostId("user/with slash", "höst")
POLICY = Policy(require_live_cells=False)


def decide(dsn: str, commands: list[Any]) -> WorkingSet:
    """Run commands with a writer's hand of its own; what it knows afterwards."""
    store, known = PostgresStore(dsn), WorkingSet(EventMapper(), POLICY, 100)
    scribe = Scribe(store, known, VirtualClock(1_000))
    for command in commands:
        assert scribe.run([Request(command, Meta("c", "test"))])[0].refusal is None
    store.close()
    return known


def write(dsn: str, commands: list[Any]) -> WorkingSet:
    return decide(dsn, [FLEET, *commands])


def busy(pairs: int) -> list[Any]:
    cell_id = "cell-a"
    one_pair = [AcquireActivity(HOST, "a", "invite", cell_id), ReleaseActivity(HOST, "a")]
    return [Assign(HOST), *(one_pair * pairs)]


def test_the_repository_folds_a_stream_to_any_version(database: str) -> None:
    known = write(database, busy(3))
    with TenureLog(PostgresRecorder(database)) as log:
        now, then = log.held(HOST), log.held(HOST, version=2)
        assert isinstance(now, Held)
        assert isinstance(then, Held)
        assert (now.version, now.assignment) == (7, known.facts.assignments[HOST])
        assert (then.version, list(then.assignment.leases)) == (2, ["control-pending:1", "a"])
        assert log.held(HostId("nobody", "nowhere")) is None


def test_the_writer_snapshots_long_streams(database: str) -> None:
    known = write(database, busy(SNAPSHOT_EVERY_VERSIONS))
    snapshots = PostgresSnapshots(database)
    with TenureLog(PostgresRecorder(database), snapshots) as log:
        held = log.held(HOST)
        assert held is not None
        assert held.version == 2 * SNAPSHOT_EVERY_VERSIONS + 1
        assert held.assignment == known.facts.assignments[HOST]
        (taken,) = snapshots.select_events(_stream(log), desc=True, limit=1)
        assert taken.originator_version == 2 * SNAPSHOT_EVERY_VERSIONS


def test_a_snapshot_is_what_is_read(database: str) -> None:
    write(database, busy(2))
    with TenureLog(PostgresRecorder(database), PostgresSnapshots(database)) as log:
        log.snapshot(HOST)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DELETE FROM log WHERE topic LIKE 'activity.%'")
        held = log.held(HOST)
        assert held is not None
        assert held.version == 5


def test_a_snapshot_of_other_folding_code_is_ignored(database: str) -> None:
    write(database, busy(2))
    other = PostgresSnapshots(database, fingerprint="another fold")
    with TenureLog(PostgresRecorder(database), other) as log:
        log.snapshot(HOST)
        assert len(other.select_events(_stream(log))) == 1
        with closing(PostgresSnapshots(database)) as ours:
            assert ours.select_events(_stream(log)) == []


def test_a_cold_writer_decides_from_snapshot_and_stream(database: str) -> None:
    before = write(database, busy(SNAPSHOT_EVERY_VERSIONS)).facts.assignments[HOST]
    cold = decide(database, [ReleaseActivity(HOST, "unknown")])
    assert cold.facts.assignments[HOST] == before


def test_the_notification_log_exports_positions_and_chain(database: str) -> None:
    write(database, busy(1))
    with TenureLog(PostgresRecorder(database)) as log:
        section = log.notification_log["1,5"]
        assert [it.id for it in section.items] == [1, 2, 3, 4, 5]
        assert all(isinstance(it, ChainedNotification) and it.chain for it in section.items)


def _stream(log: TenureLog) -> str:
    held = log.held(HOST)
    assert held is not None
    return held.id
