"""The line is cut after COMMIT was sent: each command is applied once and truthfully answered."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import EventMapper
from adapters.ports import Batch, Overtaken
from adapters.postgres.store import PostgresStore
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import LogWriter
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, ChangeActivity, RenewControl
from domain.relay.assign import Assign
from domain.relay.control import ActivateControl
from domain.relay.policy import Policy
from tests.writer.commands import FLEET
from tests.writer.cutting_proxy import CuttingProxy

NOW = 1_700_000_000_000
SECONDS_MAX = 20
HOST = HostId("user-0", "host-00")


class Line:
    """A writer that reaches its database through the proxy."""

    def __init__(self, proxy: CuttingProxy) -> None:
        self.proxy = proxy
        self.store = PostgresStore(proxy.dsn)
        policy = Policy(require_live_cells=False)
        self.writer = LogWriter(self.store, VirtualClock(NOW), policy, Telemetry())
        self.writer.start()
        self.number = 0
        self.do(FLEET)

    def request(self, command: Any, key: str | None = None) -> Request:
        self.number += 1
        return Request(command, Meta(f"command-{self.number}", "test"), key, "same")

    def do(self, command: Any, key: str | None = None) -> Any:
        outcome = self.writer.submit(self.request(command, key)).result(SECONDS_MAX)
        assert outcome.refusal is None
        return outcome.answer

    def do_cut(self, command: Any, key: str | None = None, refusals: int = 0) -> Any:
        """The same, but the COMMIT gets no answer, and so many reconnections fail."""
        cuts, self.proxy.refusals = self.proxy.cuts, refusals
        self.proxy.armed.set()
        answer = self.do(command, key)
        assert self.proxy.cuts == cuts + 1
        return answer


@pytest.fixture
def line(database: str) -> Iterator[Line]:
    with CuttingProxy(database) as proxy:
        line = Line(proxy)
        yield line
        line.writer.stop()
        line.store.close()


def topics(database: str) -> Counter[str]:
    with psycopg.connect(database) as connection:
        return Counter(row[0] for row in connection.execute("SELECT topic FROM log").fetchall())


def test_a_placement_whose_commit_got_no_answer_happened_once(line: Line, database: str) -> None:
    grant = line.do_cut(Assign(HOST))
    assert (grant.epoch, topics(database)["host.placed"]) == (1, 1)
    assert line.do(Assign(HOST)).cell_id == grant.cell_id
    line.do(AcquireActivity(HOST, "a", "invite", grant.cell_id))
    assert topics(database)["host.placed"] == 1


def test_many_commands_in_the_cut_turn_happened_once_each(line: Line, database: str) -> None:
    hosts = [HostId("user", f"host-{n:03}") for n in range(100)]
    line.proxy.armed.set()
    futures = [line.writer.submit(line.request(Assign(host))) for host in hosts]
    answers = [future.result(SECONDS_MAX).answer for future in futures]
    assert [answer.relay_host_id for answer in answers] == [host.relay_host_id for host in hosts]
    assert {answer.epoch for answer in answers} == {1}
    assert topics(database)["host.placed"] == 100
    assert line.proxy.cuts == 1


def test_a_touch_whose_commit_got_no_answer_is_applied_again(line: Line, database: str) -> None:
    grant = line.do(Assign(HOST))
    control = line.do(ActivateControl(HOST, grant.cell_id, 1, 7))
    line.do_cut(RenewControl(HOST, control, grant.cell_id, NOW + 100_000))
    store = PostgresStore(database)
    assert [row[3] for row in store.dump("lease_deadlines")] == [NOW + 100_000]
    store.close()


def test_a_keyed_touch_finds_its_result(line: Line, database: str) -> None:
    grant = line.do(Assign(HOST))
    assert line.do_cut(Assign(HOST), key="k").cell_id == grant.cell_id
    outcome = line.writer.submit(line.request(Assign(HOST), "k")).result(SECONDS_MAX)
    assert outcome.replayed
    assert outcome.answer["cell_id"] == grant.cell_id


@pytest.mark.parametrize("refusals", [1, 3])
def test_a_server_that_stays_away_changes_nothing_about_it(
    line: Line, database: str, refusals: int
) -> None:
    """The turn under the lock that put the fleet in place must not be taken for this one."""
    grant = line.do_cut(Assign(HOST), refusals=refusals)
    assert (grant.relay_host_id, grant.epoch) == (HOST.relay_host_id, 1)
    counted = line.do_cut(ChangeActivity(HOST, "invite", 1), refusals=refusals)
    assert counted is None
    assert topics(database)["host.placed"] == 1
    assert topics(database)["activity.counted"] == 1


def test_a_turn_that_arrives_late_is_void(line: Line, database: str) -> None:
    """Looking for a turn takes a turn, so the one that was looked for cannot come after."""
    store = PostgresStore(database)
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT last_value FROM writer_turns").fetchone()
    assert row is not None
    entry = store.read(0, 1)[0]
    assert store.committed(entry)
    with pytest.raises(Overtaken):
        store.commit_ahead(Batch(), row[0] + 1).finish()
    store.close()


def test_everything_written_can_be_read(line: Line, database: str) -> None:
    line.do_cut(Assign(HOST))
    store = PostgresStore(database)
    assert [EventMapper().read(entry).topic for entry in store.read(0, 100)][-1] == "host.placed"
    store.close()
