"""Renewing many controls in one statement: the single renewal's rules, item by item."""

from collections.abc import Iterator
from typing import Any

import pytest

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import EventMapper
from adapters.memory import MemoryStore
from adapters.postgres.store import PostgresStore
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.relay.activity import AcquireActivity, RenewControl
from domain.relay.assign import Assign
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from domain.relay.renewals import Renewal, RenewControls

NOW = 1_700_000_000_000
LATER = NOW + 120_000
HERE, THERE = "cell-a", "cell-b"
FLEET = ReconcileCells(
    (
        CellSettings(HERE, "https://a.test", 30, "us-central1"),
        CellSettings(THERE, "https://b.test", 30, "asia-east2"),
    )
)


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "memory":
        yield MemoryStore()
        return
    store = PostgresStore(request.getfixturevalue("database"))
    yield store
    store.close()


class Hand:
    """A writer's hand with two hosts on cell a and one on cell b."""

    def __init__(self, store: Any, forgetful: bool = False) -> None:
        self.store = store
        self.forgetful = forgetful
        known = WorkingSet(EventMapper(), Policy(require_live_cells=False), 100)
        self.scribe = Scribe(store, known, VirtualClock(NOW))
        self.do(FLEET)
        self.here = [self.place(f"here-{n}", "us-central1") for n in range(2)]
        self.there = self.place("there", "asia-east2")

    def do(self, command: Any) -> Any:
        outcome = self.scribe.run([Request(command, Meta("c", "test"))])[0]
        return outcome.refusal.code if outcome.refusal else outcome.answer

    def place(self, name: str, region: Any) -> HostId:
        host = HostId("user", name)
        grant = self.do(Assign(host, region))
        assert isinstance(grant, Grant)
        return host

    def renew(self, *items: Renewal) -> tuple[int, dict[int, str]]:
        if self.forgetful:
            self.scribe.forget()
        answer = self.do(RenewControls(HERE, items))
        return answer.renewed, {it.index: it.code for it in answer.refused}

    def deadlines(self) -> dict[str, int]:
        return {
            f"{relay_host_id}/{activity_id}": expires_at
            for _, relay_host_id, activity_id, expires_at, _ in self.store.dump("lease_deadlines")
        }


def renewal(host: HostId, activity_id: str = "control-pending:1", at: int = LATER) -> Renewal:
    return Renewal(*host, activity_id, at)


@pytest.mark.parametrize("forgetful", [False, True], ids=["at hand", "in the store"])
def test_each_item_is_renewed_or_refused_for_its_own_reason(store: Any, forgetful: bool) -> None:
    hand = Hand(store, forgetful)
    first, second = hand.here
    hand.do(AcquireActivity(first, "splice", "splice", HERE))
    items = (
        renewal(first),
        renewal(HostId("user", "nobody")),
        renewal(hand.there),
        renewal(first, "unknown"),
        renewal(first, "splice"),
        renewal(first, ""),
        renewal(first, at=NOW),
        renewal(first, at=LATER + 1),
        renewal(second, at=NOW + 100_000),
    )
    renewed, refused = hand.renew(*items)
    assert renewed == 2
    assert refused == {
        1: "assignment_not_found",
        2: "activity_cell_not_authoritative",
        3: "control_activity_not_found",
        4: "control_activity_moved",
        5: "invalid_activity_id",
        6: "invalid_activity_expiry",
        7: "invalid_activity_expiry",
    }
    assert hand.deadlines() == {
        "here-0/control-pending:1": LATER,
        "here-0/splice": NOW + 90_000,
        "here-1/control-pending:1": NOW + 100_000,
        "there/control-pending:1": NOW + 90_000,
    }
    for index, code in refused.items():
        item = items[index]
        host = HostId(item.user_id, item.relay_host_id)
        single = RenewControl(host, item.activity_id, HERE, item.expires_at)
        assert hand.do(single) == code


@pytest.mark.parametrize("forgetful", [False, True], ids=["at hand", "in the store"])
def test_an_item_named_twice_gets_the_later_expiry(store: Any, forgetful: bool) -> None:
    hand = Hand(store, forgetful)
    first, second = hand.here
    hand.do(RenewControl(second, "control-pending:1", HERE, LATER))
    renewed, refused = hand.renew(
        renewal(first), renewal(first, at=NOW + 1), renewal(second, at=NOW + 1)
    )
    assert (renewed, refused) == (3, {})
    assert hand.deadlines()["here-0/control-pending:1"] == LATER
    assert hand.deadlines()["here-1/control-pending:1"] == LATER
    liveness = {row[1]: row[2] for row in store.dump("assignment_liveness")}
    assert liveness["here-0"] == LATER


def test_a_bulk_renewal_is_seen_by_the_next_decision(store: Any) -> None:
    hand = Hand(store)
    first, _ = hand.here
    hand.renew(renewal(first))
    hand.do(RenewControl(first, "control-pending:1", HERE, NOW + 1))
    assert hand.deadlines()["here-0/control-pending:1"] == LATER


def test_no_items_change_nothing(store: Any) -> None:
    assert Hand(store).renew() == (0, {})
