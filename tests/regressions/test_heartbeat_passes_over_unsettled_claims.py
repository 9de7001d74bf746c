"""A heartbeat settles what its snapshot includes, however many claims it cannot settle.

The search for hosts once found every claim of the cell and was cut off at its limit.
"""

import pytest

import app.scribe
from domain.relay.assign import Assign
from domain.relay.control import ActivateControl
from domain.relay.heartbeat import ConnectionReport, RecordHeartbeat
from domain.relay.inventory import CellSettings, ReconcileCells
from domain.relay.policy import Policy
from tests.properties.commands import HOSTS
from tests.properties.world import World

URL = "https://limited.test"
LIMITED = CellSettings(
    "limited", URL, 100, hard_cap_connections=600, unobserved_bound_connections=50
)


def heartbeat(enforced: int) -> RecordHeartbeat:
    report = ConnectionReport(
        enforced, 0, 0, enforced, hard_cap_connections=600, unobserved_bound_connections=50
    )
    return RecordHeartbeat("limited", URL, "one", 10, True, 0, connections=report)


def test_an_observed_claim_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.scribe, "SWEEP_HOSTS_MAX", 1)
    world = World(Policy(require_live_cells=False))
    world.run(ReconcileCells((LIMITED,)))
    world.run(heartbeat(0))
    unsettled, observed = HOSTS[:2]
    world.run(Assign(unsettled))
    world.run(Assign(observed))
    world.run(ActivateControl(unsettled, "limited", 1, 1))
    world.run(ActivateControl(observed, "limited", 1, 1, inclusion_watermark=1))
    world.run(heartbeat(2))
    states = {row[1]: row[6] for row in world.rows("connection_reservations")}
    assert states == {unsettled.relay_host_id: "claimed", observed.relay_host_id: "released"}
