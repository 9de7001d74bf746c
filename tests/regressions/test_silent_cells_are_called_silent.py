"""A refusal because no cell serves says why each does not.

With every cell's heartbeat overdue the answer was "No cell has room for this: region is …", which
sent its readers to look for capacity.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.limits import ACTIVITY_LEASE_MS, DORMANCY_MS, HEARTBEAT_TTL_MS
from tests.cli.terminal import tenure
from tests.http.running import NOW, Running, running

LATER = NOW + HEARTBEAT_TTL_MS
HEARD = {"standing": "silent", "standing_since": NOW}


@pytest.fixture
def edge(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("TENURE_ALLOW_UNSAFE_DURABILITY", "true")
    with running(database, tmp_path) as it:
        yield it


def told(problem: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: problem.get(name) for name in ("code", *names)}


def limit(edge: Running, cell_id: str) -> None:
    connections = {"hard_cap_connections": 600, "unobserved_bound_connections": 50}
    edge.configure(cell_id, connection_limit=connections)


def test_cells_are_counted_by_their_standing(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.live_cell("c-2")
    edge.clock.set(LATER)
    edge.live_cell("c-3", admission="existing-only")
    edge.live_cell("c-4")
    limit(edge, "c-4")
    edge.configure("c-5")
    edge.beat("c-5", ready=False)
    problem = edge.assign().json()
    assert told(problem, "cells", "cells_silent", "cells_closed", "cells_without_headroom") == {
        "code": "relay_capacity_exhausted",
        "cells": 5,
        "cells_silent": 2,
        "cells_closed": 1,
        "cells_without_headroom": 1,
    }
    assert problem["cells_not_ready"] == 1
    assert "cells_silent is 2" in problem["detail"]
    assert "has room" not in problem["detail"]


def test_a_host_with_a_home_is_told_why_it_does_not_serve(edge: Running) -> None:
    edge.live_cell("c-1")
    assert edge.assign().status_code == 200
    edge.clock.set(LATER)
    placed_anew = edge.assign().json()
    assert told(placed_anew, "cell_id", *HEARD, "cells_silent") == {
        "code": "relay_capacity_exhausted",
        "cell_id": "c-1",
        **HEARD,
        "cells_silent": 1,
    }
    limit(edge, "c-1")
    fenced = edge.assign().json()
    home = {"cell_id": "c-1", **HEARD}
    assert told(fenced, *home) == {"code": "relay_capacity_exhausted", **home}
    asked = edge.operator.get("/v1/hosts/u/h/assignment").json()
    assert told(asked, *home) == {"code": "assignment_not_found", **home}


def test_a_target_is_told_why_it_takes_nobody(edge: Running) -> None:
    edge.live_cell("c-1")
    assert edge.assign().status_code == 200
    edge.clock.set(NOW + ACTIVITY_LEASE_MS)
    edge.operator.post("/v1/sweeps/activity-leases")
    edge.clock.set(edge.clock.now_ms() + DORMANCY_MS)
    edge.configure("c-2")
    for target, standing in (("c-2", "silent"), ("nowhere", "unknown")):
        refused = edge.operator.put(
            "/v1/hosts/u/h/assignment/cell", json={"target_cell_id": target}
        ).json()
        assert told(refused, "cell_id", "standing") == {
            "code": "target_cell_unavailable",
            "cell_id": target,
            "standing": standing,
        }


def test_the_fleets_table_says_the_same_words(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.configure("c-2")
    edge.clock.set(LATER)
    rows = {it["cell_id"]: it for it in edge.operator.get("/v1/cells").json()["cells"]}
    assert {name: rows["c-1"][name] for name in HEARD} == HEARD
    assert (rows["c-2"]["standing"], rows["c-2"]["standing_since"]) == ("silent", None)
    shown = tenure("cells", dsn=edge.dsn).out
    assert "silent since 2025-07-31 22:13:20" in shown
    assert "silent, never heard of" in shown
