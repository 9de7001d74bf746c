"""How the writer groups commands, and that one command's trouble is its own."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import orjson
import psycopg
import pytest

import app.writer
from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import EventMapper, UnreadableEvent
from adapters.memory import MemoryStore
from adapters.ports import Unavailable
from adapters.postgres.store import PostgresStore
from adapters.streams import cell_stream
from app.outcome import KeyReused, Outcome, VersionMismatch
from app.scribe import Condition, Request, Scribe
from app.telemetry import Telemetry
from app.working_set import WorkingSet
from app.writer import LogWriter, QueueFull
from domain.ids import HostId
from domain.relay import decide
from domain.relay.activity import ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.control import ActivateControl
from domain.relay.expiry import ReleaseExpiredLeases
from domain.relay.heartbeat import ConnectionReport, RecordHeartbeat
from domain.relay.inventory import CellSettings, ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.policy import Policy
from domain.relay.turn import Turn
from tests.fold import check_log_and_tables
from tests.waiting import until
from tests.writer.commands import FLEET, HOSTS

NOW = 1_700_000_000_000
SECONDS_MAX = 20


class Desk:
    """A writer with a fleet, and short ways to ask it."""

    def __init__(self, dsn: str, **options: Any) -> None:
        self.dsn = dsn
        self.store = PostgresStore(dsn)
        policy = Policy(require_live_cells=False)
        self.clock = VirtualClock(NOW)
        self.writer = LogWriter(self.store, self.clock, policy, Telemetry(), **options)

    def submit(self, command: Any, key: str | None = None, **rest: Any) -> "Future[Outcome]":
        fingerprint = rest.pop("fingerprint", "same")
        return self.writer.submit(Request(command, Meta("c", "test"), key, fingerprint, **rest))

    def ask(self, command: Any, key: str | None = None, **rest: Any) -> Outcome:
        return self.submit(command, key, **rest).result(SECONDS_MAX)


@pytest.fixture
def desk(database: str) -> Iterator[Desk]:
    desk = Desk(database)
    desk.writer.start()
    desk.ask(FLEET)
    yield desk
    desk.writer.stop()
    desk.store.close()


def waiting_for_a_lock(connection: psycopg.Connection[Any]) -> bool:
    """Whether anybody waits for the table that is held."""
    row = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'log'::regclass"
    ).fetchone()
    return row is not None and row[0] > 0


def turns(dsn: str) -> int:
    """How many turns writers have had."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT last_value FROM writer_turns").fetchone()
    assert row is not None
    return int(row[0])


def test_commands_that_wait_together_are_committed_together(desk: Desk, database: str) -> None:
    before = turns(database)
    with psycopg.connect(database) as blocker:
        blocker.execute("LOCK TABLE log IN EXCLUSIVE MODE")
        futures = [desk.submit(Assign(host)) for host in HOSTS]
    outcomes = [future.result(SECONDS_MAX) for future in futures]
    assert [it.answer.relay_host_id for it in outcomes] == [it.relay_host_id for it in HOSTS]
    assert turns(database) - before <= 4
    check_log_and_tables(desk.store)


def test_nobody_is_answered_before_the_commit(desk: Desk, database: str) -> None:
    with psycopg.connect(database) as blocker:
        blocker.execute("LOCK TABLE log IN EXCLUSIVE MODE")
        future = desk.submit(Assign(HOSTS[0]))
        until(lambda: waiting_for_a_lock(blocker))
        assert not future.done()
    assert future.result(SECONDS_MAX).refusal is None


def test_commands_are_decided_in_the_order_they_came(desk: Desk) -> None:
    host = HOSTS[0]
    futures = [desk.submit(Assign(host, region)) for region in ("asia-east2", "us-central1") * 20]
    assert len({future.result(SECONDS_MAX).answer.cell_id for future in futures}) == 1
    assert futures[0].result().answer.region == "asia-east2"


def test_one_bad_command_fails_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_turn: Turn, _command: Any) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setitem(decide.RULES, ReleaseActivity, broken)
    with caplog.at_level(logging.CRITICAL):
        good = [desk.submit(Assign(host)) for host in HOSTS[:10]]
        bad = desk.submit(ReleaseActivity(HOSTS[0], "a"))
        more = [desk.submit(Assign(host)) for host in HOSTS[10:20]]
        with pytest.raises(ZeroDivisionError):
            bad.result(SECONDS_MAX)
    assert {it.result(SECONDS_MAX).answer.epoch for it in (*good, *more)} == {1}
    check_log_and_tables(desk.store)


def test_a_violated_constraint_changes_nothing_and_stops_nobody(
    desk: Desk, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE assignments ADD CHECK (relay_host_id <> 'host-03')")
    with caplog.at_level(logging.CRITICAL):
        futures = [desk.submit(Assign(host)) for host in HOSTS[:6]]
        with pytest.raises(psycopg.errors.CheckViolation):
            futures[3].result(SECONDS_MAX)
    placed = [it.result(SECONDS_MAX) for n, it in enumerate(futures) if n != 3]
    assert all(it.refusal is None for it in placed)
    check_log_and_tables(desk.store)


def test_a_full_queue_is_an_answer(database: str) -> None:
    desk = Desk(database, commands_waiting_max=3)
    futures = [desk.submit(FLEET) for _ in range(3)]
    with pytest.raises(QueueFull):
        desk.submit(FLEET)
    desk.writer.start()
    assert all(it.result(SECONDS_MAX).refusal is None for it in futures)
    desk.writer.stop()
    with pytest.raises(QueueFull):
        desk.submit(FLEET)
    desk.store.close()


def test_what_waits_is_finished_before_the_writer_ends(database: str) -> None:
    desk = Desk(database)
    desk.submit(FLEET)
    futures = [desk.submit(Assign(host)) for host in HOSTS]
    desk.writer.start()
    desk.writer.stop()
    assert all(it.done() and it.result().refusal is None for it in futures)
    desk.store.close()


def test_the_same_key_twice_in_one_turn_is_one_command(desk: Desk) -> None:
    first, second = desk.submit(Assign(HOSTS[0]), "k"), desk.submit(Assign(HOSTS[0]), "k")
    other = desk.submit(Assign(HOSTS[1]), "k", fingerprint="another")
    answer = first.result(SECONDS_MAX).answer
    repeated = second.result(SECONDS_MAX)
    assert repeated.replayed
    assert repeated.answer == orjson.loads(orjson.dumps(answer))
    assert isinstance(other.result(SECONDS_MAX).refusal, KeyReused)
    assert desk.ask(Assign(HOSTS[0]), "k").replayed


def test_a_search_sees_everything_that_came_before_it(desk: Desk) -> None:
    placed = [desk.submit(Assign(host)) for host in HOSTS[:30]]
    for it in placed:
        it.result(SECONDS_MAX)
    desk.clock.set(NOW + 90_000)
    later = [desk.submit(Assign(HostId("late", f"host-{n}"))) for n in range(20)]
    swept = desk.submit(ReleaseExpiredLeases())
    assert swept.result(SECONDS_MAX).answer == 30
    assert all(it.result(SECONDS_MAX).answer.epoch == 1 for it in later)
    check_log_and_tables(desk.store)


def test_a_command_for_another_version_is_refused(desk: Desk) -> None:
    command, stream = SetCellAdmission("cell-a", "existing-only"), cell_stream("cell-a")
    stale = desk.ask(command, condition=Condition(stream, (7,)))
    assert isinstance(stale.refusal, VersionMismatch)
    assert stale.refusal.facts == {"version": 1}
    nothing = desk.ask(command, condition=Condition(cell_stream("unknown"), ()))
    assert isinstance(nothing.refusal, VersionMismatch)
    assert desk.ask(command, condition=Condition(stream, (1,))).refusal is None
    assert desk.ask(command, condition=Condition(stream, ())).refusal is None


def test_a_coroutine_that_gave_up_disturbs_nobody(desk: Desk) -> None:
    async def ask() -> Outcome:
        given_up = asyncio.ensure_future(
            desk.writer.execute(Request(Assign(HOSTS[0]), Meta("c", "test")))
        )
        await asyncio.sleep(0)
        given_up.cancel()
        return await desk.writer.execute(Request(Assign(HOSTS[1]), Meta("c", "test")))

    assert asyncio.run(ask()).refusal is None


def test_an_event_of_newer_code_stops_the_writer_for_good(
    desk: Desk,
    database: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app.writer, "TURNS_UNDER_LOCK_AFTER_OVERTAKEN", 1)
    desk.ask(Assign(HOSTS[0]))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE log SET topic = 'host.teleported' WHERE topic = 'host.placed'")
        connection.execute("SELECT nextval('writer_turns')")
    with caplog.at_level(logging.CRITICAL), pytest.raises(Unavailable):
        desk.ask(Assign(HOSTS[0]))
    assert not desk.writer.alive
    assert isinstance(desk.writer.unreadable, UnreadableEvent)
    assert desk.writer.unreadable.topic == "host.teleported"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO log SELECT position + 1, 'cell:later', 1, 'cell.registered', "
            "(SELECT state FROM log WHERE topic = 'cell.registered' LIMIT 1), recorded_at, chain "
            "FROM log ORDER BY position DESC LIMIT 1"
        )
    head = desk.store.head().position
    for host in HOSTS[1:4]:
        with pytest.raises(Unavailable):
            desk.ask(Assign(host))
    assert desk.store.head().position == head


def test_a_command_sees_what_those_before_it_in_the_turn_made_of_its_cell(database: str) -> None:
    """A heartbeat settles connections although the cell got its limit in the same turn."""
    desk = Desk(database)
    told = CellSettings(
        "a", "https://a.test", 9, hard_cap_connections=600, unobserved_bound_connections=50
    )
    desk.submit(ReconcileCells((CellSettings("a", "https://a.test", 9),)))
    desk.writer.start()
    desk.ask(Assign(HOSTS[0]))

    def report(enforced: int, watermark: int) -> RecordHeartbeat:
        connections = ConnectionReport(enforced, 0, 0, enforced, watermark, 600, 50)
        return RecordHeartbeat("a", "https://a.test", "one", 1, True, 0, connections=connections)

    with psycopg.connect(database) as blocker:
        blocker.execute("LOCK TABLE log IN EXCLUSIVE MODE")
        asked = [
            ConfigureCell(told, "general"),
            report(0, 1),
            Assign(HOSTS[1]),
            ActivateControl(HOSTS[1], "a", 1, 1, inclusion_watermark=3),
            report(1, 5),
        ]
        futures = [desk.submit(command) for command in asked]
    assert all(it.result(SECONDS_MAX).refusal is None for it in futures)
    assert [row[6] for row in desk.store.dump("connection_reservations")] == ["released"]
    desk.writer.stop()
    desk.store.close()


def test_a_writer_that_knows_nothing_looks_only_under_the_lock() -> None:
    """What others add between an early look and the first turn would be missed."""
    store, policy = MemoryStore(), Policy(require_live_cells=False)
    left, right = (
        Scribe(store, WorkingSet(EventMapper(), policy, 2_000), VirtualClock(NOW)) for _ in "lr"
    )
    request = Request(Assign(HOSTS[0]), Meta("c", "test"))
    left.prefetch([request])
    left_first = [Request(FLEET, Meta("c", "test")), request]
    granted = right.run(left_first)[1].answer
    assert left.run([request])[0].answer.epoch == granted.epoch
    assert len(store.streams["assignment:user-0/host-00"]) == 1


def test_a_writer_that_missed_too_much_starts_anew(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, policy = PostgresStore(desk.dsn), Policy(require_live_cells=False)
    other = Scribe(store, WorkingSet(EventMapper(), policy, 2_000), VirtualClock(NOW))
    other.run([Request(Assign(HOSTS[0]), Meta("c", "test"))])
    for host in HOSTS[1:8]:
        desk.ask(Assign(host))
    monkeypatch.setattr("adapters.ports.CATCH_UP_ENTRIES_MAX", 3)
    again = [Request(Assign(host), Meta("c", "test")) for host in HOSTS[:9]]
    assert other.run(again) == []
    assert [it.answer.epoch for it in other.run(again)] == [1] * 9
    check_log_and_tables(store)
    store.close()
