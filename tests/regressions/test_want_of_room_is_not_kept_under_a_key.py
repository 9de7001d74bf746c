"""A refusal for want of room is no answer to keep: the same key is a new attempt.

`relay_capacity_exhausted` was once repeated for 24 hours, without `Retry-After`, though there was
room again.
"""

from pathlib import Path

from adapters.entry import Meta
from app.outcome import Outcome
from app.scribe import Request
from domain.ids import HostId
from domain.refusals import RelayCapacityExhausted
from domain.relay.assign import Assign
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.policy import Policy
from tests.http.running import running
from tests.properties.world import World

PATH = "/v1/hosts/u/h/assignment"
HEADERS = {"Idempotency-Key": "once"}
META = Meta("c", "test")
PLACED = Request(Assign(HostId("u", "h")), META, "once")
NO_CELLS = Request(ReconcileCells(()), META)
A_CELL = Request(ReconcileCells((CellSettings("c-1", "https://c-1.test", 9),)), META)


def test_the_same_key_succeeds_when_there_is_room(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as edge:
        for _ in range(2):
            refused = edge.operator.post(PATH, json={}, headers=HEADERS)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert "Idempotency-Replayed" not in refused.headers
        edge.live_cell()
        placed = edge.operator.post(PATH, json={}, headers=HEADERS)
        assert placed.status_code == 200
        again = edge.operator.post(PATH, json={}, headers=HEADERS)
        assert (again.content, again.headers["Idempotency-Replayed"]) == (placed.content, "true")


def decided_anew(outcomes: list[Outcome]) -> None:
    refused, _, placed, again = outcomes
    assert isinstance(refused.refusal, RelayCapacityExhausted)
    assert (placed.refusal, placed.replayed) == (None, False)
    assert (again.answer["epoch"], again.replayed) == (placed.answer.epoch, True)


def test_the_same_key_is_decided_anew_in_one_turn() -> None:
    world = World(Policy(require_live_cells=False))
    decided_anew(world.scribe.run([PLACED, A_CELL, PLACED, PLACED]))


def test_the_same_key_is_decided_anew_ahead_of_the_lock() -> None:
    world = World(Policy(require_live_cells=False))
    world.scribe.run([NO_CELLS])
    requests, draft = [PLACED, A_CELL, PLACED, PLACED], world.scribe.new_draft()
    world.scribe.prepare(requests)
    assert world.scribe.decide_ahead(requests, draft, {}) == len(requests)
    decided_anew(draft.outcomes)
