"""A refusal with `Retry-After` is not kept under its key.

`relay_capacity_exhausted` was once stored like any answer: a client that did as it was told, and
tried again under the same key, was refused for 24 hours whatever room there was.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from adapters.clock import VirtualClock
from adapters.memory import MemoryCommit, MemoryStore
from adapters.ports import Batch, Result, Unavailable
from app.http.problems import kind_of
from app.outcome import REFUSALS
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import LogWriter
from domain.refusals import Exhausted, RelayCapacityExhausted
from domain.relay.assign import Assign
from domain.relay.inventory import ReconcileCells
from domain.relay.policy import Policy
from tests.http.running import Running, running
from tests.properties.world import META, World
from tests.writer.commands import FLEET, HOSTS

PATH = "/v1/hosts/u/h/assignment"
SECONDS_MAX = 20
KEY = {"Idempotency-Key": "k"}
KEPT_ONCE = '{"refusal":"relay_capacity_exhausted","facts":{}}'


class Losing(MemoryStore):
    """A store that, when told to, loses the next turn before it arrives."""

    loses = False

    def commit_ahead(self, batch: Batch, turn: int) -> MemoryCommit:
        if not self.loses:
            return super().commit_ahead(batch, turn)
        self.loses = False
        raise Unavailable


@pytest.fixture
def edge(database: str, tmp_path: Path) -> Iterator[Running]:
    with running(database, tmp_path) as it:
        yield it


def test_the_same_key_is_a_new_attempt(edge: Running) -> None:
    for _ in range(2):
        refused = edge.operator.post(PATH, json={}, headers=KEY)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert "Idempotency-Replayed" not in refused.headers
    edge.live_cell()
    placed = edge.operator.post(PATH, json={}, headers=KEY)
    assert placed.status_code == 200
    assert "Idempotency-Replayed" not in placed.headers
    again = edge.operator.post(PATH, json={}, headers=KEY)
    assert (again.content, again.headers["Idempotency-Replayed"]) == (placed.content, "true")


def test_what_earlier_code_kept_is_replaced(edge: Running) -> None:
    edge.live_cell()
    first = edge.operator.post(PATH, json={}, headers=KEY)
    with psycopg.connect(edge.dsn, autocommit=True) as connection:
        connection.execute("UPDATE command_results SET answer = %s", [KEPT_ONCE])
    anew = edge.operator.post(PATH, json={}, headers=KEY)
    assert (anew.status_code, anew.json()["cell_id"]) == (200, first.json()["cell_id"])
    assert "Idempotency-Replayed" not in anew.headers
    assert edge.operator.post(PATH, json={}, headers=KEY).content == anew.content


def test_other_refusals_of_earlier_code_are_still_read(edge: Running) -> None:
    """They were stored without the id of their request."""
    path, body = "/v1/hosts/u/h/assignment/cell", {"target_cell_id": "c-1"}
    edge.operator.put(path, json=body, headers=KEY)
    with psycopg.connect(edge.dsn, autocommit=True) as connection:
        connection.execute(
            "UPDATE command_results SET answer = (answer::jsonb - 'request_id')::text"
        )
    again = edge.operator.put(path, json=body, headers=KEY)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (404, "true")
    assert again.json()["request_id"] == again.headers["X-Request-ID"]


def test_in_one_turn_the_second_is_decided_anew() -> None:
    world = World(Policy(require_live_cells=False))
    refused = world.run_all([Assign(HOSTS[0]), Assign(HOSTS[0])], "k")
    assert [type(it.refusal) for it in refused] == [RelayCapacityExhausted] * 2
    assert not any(it.replayed for it in refused)
    assert world.store.results == {}
    world.run(FLEET)
    first, second = world.run_all([Assign(HOSTS[0]), Assign(HOSTS[0])], "k")
    assert (first.replayed, second.replayed) == (False, True)


def test_ahead_of_the_lock_the_second_is_decided_anew() -> None:
    world = World(Policy(require_live_cells=False))
    world.run(ReconcileCells(()))
    placed = Request(Assign(HOSTS[0]), META, "k")
    requests, draft = [placed, Request(FLEET, META), placed, placed], world.scribe.new_draft()
    world.scribe.prepare(requests)
    assert world.scribe.decide_ahead(requests, draft, {}) == len(requests)
    refused, _, first, second = draft.outcomes
    assert isinstance(refused.refusal, RelayCapacityExhausted)
    assert (first.refusal, first.replayed) == (None, False)
    assert (second.answer["epoch"], second.replayed) == (first.answer.epoch, True)


def test_a_result_of_earlier_code_does_not_pass_for_a_committed_turn() -> None:
    """Only the very results of a turn show that its COMMIT, which got no answer, was done."""
    store = Losing()
    store.results["k"] = Result("k", "", KEPT_ONCE, 0, 0)
    policy = Policy(require_live_cells=False)
    writer = LogWriter(store, VirtualClock(1_000), policy, Telemetry())
    writer.start()
    for command in (FLEET, Assign(HOSTS[0])):
        writer.submit(Request(command, META)).result(SECONDS_MAX)
    store.loses = True
    touch = writer.submit(Request(Assign(HOSTS[0]), META, "k")).result(SECONDS_MAX)
    writer.stop()
    assert not store.loses
    assert touch.refusal is None
    assert store.results["k"].answer != KEPT_ONCE


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=lambda it: it.code)
def test_exactly_those_say_when_to_try_again(refusal: type) -> None:
    assert (kind_of(refusal).retry_after_seconds is not None) == issubclass(refusal, Exhausted)
