"""Rebuilding beside the live tables: equal, resumable, refusing to hide a difference."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.postgres import kept
from adapters.postgres.rebuild import Rebuild, drop_previous
from adapters.postgres.store import PostgresStore, connect
from adapters.postgres.verify import verify
from app.outcome import Outcome
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import LogWriter
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ReleaseActivity
from domain.relay.assign import Assign
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from projections.catalogue import PROJECTIONS, TABLES
from projections.rebuild import Progress, RebuildRefused
from projections.relay.volatile import TABLES as VOLATILE
from projections.table import Projection
from tests.projections.logs import NOW, change, fleet

META = Meta("command", "test")
ANSWER_SECONDS_MAX = 20.0
ROOT = Path(__file__).parents[2]
KILLED_AT = 100
KILLED = f"""
import os, signal, sys
from adapters.postgres.rebuild import Rebuild
from projections.catalogue import PROJECTIONS

def tell(progress):
    if progress.position >= {KILLED_AT}:
        os.kill(os.getpid(), signal.SIGKILL)

Rebuild(sys.argv[1], PROJECTIONS, tell=tell, page_events=50).run()
"""


def dumped(dsn: str) -> dict[str, list[tuple[object, ...]]]:
    store = PostgresStore(dsn)
    try:
        return {table.name: store.dump(table.name) for table in (*TABLES, *VOLATILE)}
    finally:
        store.close()


def catalogue(dsn: str) -> list[tuple[object, ...]]:
    """The live tables' indexes, checks and storage settings."""
    names = [table.name for table in TABLES]
    with connect(dsn) as connection:
        indexes = connection.execute(
            "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s) "
            "ORDER BY 1, 2",
            [names],
        ).fetchall()
        checks = connection.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) "
            "FROM pg_constraint WHERE conrelid::regclass::text = ANY(%s) AND contype <> 'n' "
            "ORDER BY 1, 2",
            [names],
        ).fetchall()
        storage = connection.execute(
            "SELECT relname, reloptions FROM pg_class WHERE relname = ANY(%s) AND relkind = 'r' "
            "ORDER BY 1",
            [names],
        ).fetchall()
    return [*indexes, *checks, *storage]


def test_every_table_of_the_recorded_log_has_rows(untouched: str) -> None:
    live = dumped(untouched)
    assert [table.name for table in TABLES if not live[table.name]] == []


@pytest.mark.parametrize("projection", PROJECTIONS, ids=lambda it: str(it.name))
def test_a_rebuilt_projection_equals_the_live_one(untouched: str, projection: Projection) -> None:
    before = dumped(untouched)
    rebuilt = Rebuild(untouched, [projection], page_events=64).run()
    assert (rebuilt.differences, rebuilt.compared, rebuilt.resumed_at) == ((), True, 0)
    assert dumped(untouched) == before


def test_all_are_rebuilt_in_one_pass_with_their_indexes_again_and_again(untouched: str) -> None:
    before, shape = dumped(untouched), catalogue(untouched)
    phases = []
    for _ in range(2):
        Rebuild(untouched, PROJECTIONS, tell=lambda it: phases.append(it.phase)).run()
        assert dumped(untouched) == before
        assert catalogue(untouched) == shape
    assert phases[-3:] == ["comparing", "switching", "done"]
    assert drop_previous(untouched, PROJECTIONS) == [it.name for it in sorted_projections()]
    assert drop_previous(untouched, PROJECTIONS) == []
    with connect(untouched) as connection:
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relname ~ '^(previous|rebuild)_'"
        ).fetchall()
    assert left == []


def sorted_projections() -> list[Projection]:
    return sorted(PROJECTIONS, key=lambda it: it.name)


def test_a_rebuild_of_nothing_is_nothing(database: str) -> None:
    rebuilt = Rebuild(database, PROJECTIONS).run()
    assert (rebuilt.position, rebuilt.differences) == (0, ())


def test_a_killed_rebuild_goes_on_where_it_was(recorded: str) -> None:
    before = dumped(recorded)
    killed = subprocess.run([sys.executable, "-c", KILLED, recorded], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert dumped(recorded) == before
    rebuilt = Rebuild(recorded, PROJECTIONS, page_events=50).run()
    assert KILLED_AT <= rebuilt.resumed_at < rebuilt.position
    assert dumped(recorded) == before


def test_a_rebuild_begun_by_other_code_begins_anew(recorded: str) -> None:
    subprocess.run([sys.executable, "-c", KILLED, recorded], cwd=ROOT, check=False)
    change(recorded, "UPDATE projections SET code = 'other' WHERE name = 'cells'")
    assert Rebuild(recorded, PROJECTIONS, page_events=500).run().resumed_at == 0


def test_a_tampered_row_is_found_and_left_as_it_is(recorded: str) -> None:
    assert change(recorded, "UPDATE assignments SET epoch = 99 WHERE user_id = 'user-3'") == 1
    assert change(recorded, "DELETE FROM activity_leases WHERE user_id = 'user-4'") == 2
    tampered = dumped(recorded)

    found = verify(recorded, PROJECTIONS, page_events=100)
    by_table = {it.table: it for it in found.differences}
    assert set(by_table) == {"assignments", "activity_leases"}
    epoch = by_table["assignments"]
    assert epoch.key == ("user-3", "desktop-1")
    assert epoch.live is not None
    assert epoch.folded is not None
    assert (epoch.live["epoch"], epoch.folded["epoch"]) == (99, 1)
    lease = by_table["activity_leases"]
    assert (lease.count, lease.key[0], lease.live) == (2, "user-4", None)

    with pytest.raises(RebuildRefused, match=r"assignments: 1 rows differ, first \(user-3"):
        Rebuild(recorded, PROJECTIONS).run()
    assert dumped(recorded) == tampered

    accepted = Rebuild(recorded, PROJECTIONS, accept_differences=True).run()
    assert {it.table for it in accepted.differences} == set(by_table)
    assert verify(recorded, PROJECTIONS).differences == ()


def test_a_row_too_many_is_found(recorded: str) -> None:
    change(recorded, "INSERT INTO cell_reservations VALUES ('c-nobody', 0, 0, 0)")
    (difference,) = verify(recorded, PROJECTIONS).differences
    assert (difference.table, difference.key, difference.folded) == (
        "cell_reservations",
        ("c-nobody",),
        None,
    )


def test_tables_of_another_version_are_switched_without_comparing(recorded: str) -> None:
    before = dumped(recorded)
    change(recorded, "UPDATE controls SET generation = 0")
    with connect(recorded) as connection:
        connection.execute(
            "INSERT INTO projections VALUES ('activity_leases', 'live', 7, 'old', 1)"
        )
    rebuilt = Rebuild(recorded, PROJECTIONS).run()
    assert not rebuilt.compared
    assert dumped(recorded) == before
    with connect(recorded) as connection:
        rows = {(it.name, it.role): it.version for it in kept.read(connection)}
    assert rows["activity_leases", "live"] == 1
    assert rows["activity_leases", "previous"] == 7


def test_two_rebuilds_at_once_are_one_too_many(untouched: str) -> None:
    refused: list[Progress] = []

    def tell(progress: Progress) -> None:
        if progress.phase == "comparing" and not refused:
            with pytest.raises(RebuildRefused, match="another rebuild"):
                Rebuild(untouched, PROJECTIONS).run()
            refused.append(progress)

    Rebuild(untouched, PROJECTIONS, tell=tell).run()
    assert refused


def test_a_long_reader_is_waited_out(untouched: str) -> None:
    reading = psycopg.connect(untouched)
    reading.execute("SELECT count(*) FROM cells")
    switches: list[str] = []

    def tell(progress: Progress) -> None:
        switches.append(progress.phase)
        if switches.count("switching") == 2:
            reading.close()

    Rebuild(untouched, PROJECTIONS, tell=tell).run()
    assert switches.count("switching") == 2


class Busy:
    """A writer that never stops writing, in a thread of its own."""

    def __init__(self, dsn: str) -> None:
        self._store = PostgresStore(dsn)
        policy = Policy(require_live_cells=False)
        self.writer = LogWriter(self._store, VirtualClock(NOW), policy, Telemetry())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.failures: list[BaseException] = []
        self.rounds = 0

    def __enter__(self) -> "Busy":
        self.writer.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.writer.stop()
        self._store.close()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self._round(HostId(f"busy-{self.rounds % 30}", "desktop-1"), self.rounds)
                self.rounds += 1
        except BaseException as error:
            self.failures.append(error)

    def _round(self, host: HostId, number: int) -> None:
        grant = self._answer(Request(Assign(host, None, None), META)).answer
        assert isinstance(grant, Grant)
        activity = f"splice:{number}"
        commands = (
            AcquireActivity(host, activity, "splice", grant.cell_id, None),
            ReleaseActivity(host, activity),
        )
        for command in commands:
            assert self._answer(Request(command, META)).refusal is None

    def _answer(self, request: Request) -> Outcome:
        return self.writer.submit(request).result(ANSWER_SECONDS_MAX)


def test_a_writer_writes_before_during_and_after(database: str) -> None:
    with fleet(database) as it:
        it.open_cells()
        it.place(0, 60)
    with Busy(database) as busy:
        positions = []
        for _ in range(3):
            rebuilt = Rebuild(database, PROJECTIONS, page_events=40).run()
            assert rebuilt.differences == ()
            positions.append((rebuilt.position, busy.rounds))
            written = busy.rounds
            deadline = threading.Event()
            while busy.rounds < written + 5 and not busy.failures:
                deadline.wait(0.01)
        assert busy.failures == []
    assert positions == sorted(set(positions))
    verified = verify(database, PROJECTIONS)
    assert verified.differences == ()
    assert verified.position > positions[-1][0]
