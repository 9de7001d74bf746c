"""How to meet each refusal over HTTP: one case a code."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from adapters.ports import Unavailable
from app.writer import QueueFull
from domain.limits import DORMANCY_MS
from tests.http.running import NOW, Running, heartbeat

Case = Callable[[Running, pytest.MonkeyPatch], httpx.Response]
CASES: dict[str, Case] = {}
BODY = {"cell_url": "https://c-1.example", "capacity_units": 1, "admission": "general"}
LIMIT = {"hard_cap_connections": 600, "unobserved_bound_connections": 100}


def case(code: str) -> Callable[[Case], Case]:
    def register(it: Case) -> Case:
        assert code not in CASES
        CASES[code] = it
        return it

    return register


def report(enforced: int, watermark: int, **more: int) -> dict[str, Any]:
    return {
        "total_connections": enforced,
        "in_flight_connections": 0,
        "reserved_connections": 0,
        "enforced_connections": enforced,
        "inclusion_watermark": watermark,
        **LIMIT,
        **more,
    }


def placed(edge: Running) -> None:
    edge.live_cell()
    assert edge.assign().status_code == 200


def dormant(edge: Running) -> None:
    placed(edge)
    edge.post("activities/releases", activity_id="control-pending:1")
    edge.clock.set(NOW + DORMANCY_MS)


def rebalance(edge: Running, target_cell_id: str) -> httpx.Response:
    return edge.operator.put(
        "/v1/hosts/u/h/assignment/cell", json={"target_cell_id": target_cell_id}
    )


def renew(edge: Running, **told: Any) -> httpx.Response:
    body = {"activity_id": "control-pending:1", "cell_id": "c-1", "expires_at": NOW + 1}
    return edge.post("activities/renewals", **{**body, **told})


def begin(edge: Running, **told: Any) -> httpx.Response:
    return edge.post(
        "activities", **{"activity_id": "invite:1", "kind": "invite", "cell_id": "c-1", **told}
    )


@case("invalid_activity_id")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return begin(edge, activity_id="a" * 257)


@case("invalid_activity_expiry")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    return begin(edge, expires_at=NOW)


@case("assignment_not_found")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.get("/v1/hosts/u/h/assignment")


@case("cell_not_found")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.get("/v1/cells/c-9")


@case("control_activity_not_found")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    return renew(edge, activity_id="control:c-1:8")


@case("activity_cell_not_authoritative")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    return begin(edge, cell_id="c-2")


@case("assignment_active")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    return rebalance(edge, "c-2")


@case("target_matches_source")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    dormant(edge)
    return rebalance(edge, "c-1")


@case("target_cell_unavailable")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    dormant(edge)
    return rebalance(edge, "c-2")


@case("cell_capacity_below_reserved")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    begin(edge, kind="splice")
    return edge.operator.put("/v1/cells/c-1", json=BODY)


@case("cell_url_taken")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure("c-1")
    return edge.operator.put("/v1/cells/c-2", json=BODY)


@case("cell_connection_limit_not_configured")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure()
    return edge.beat(connections=report(5, 1))


@case("cell_connection_telemetry_mismatch")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure(connection_limit=LIMIT)
    return edge.beat(connections=report(5, 1, enforced_connections=6))


@case("stale_connection_snapshot")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure(connection_limit=LIMIT)
    assert edge.beat(connections=report(5, 7)).status_code == 204
    return edge.beat(connections=report(5, 7))


@case("cell_origin_mismatch")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure()
    return edge.beat(cell_url="https://elsewhere.example")


@case("cell_region_mismatch")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure()
    return edge.beat(region="asia-east2")


@case("stale_cell_incarnation")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.live_cell()
    return edge.beat(cell_incarnation="another", started_at=heartbeat()["started_at"])


@case("control_activity_moved")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    begin(edge)
    return renew(edge, activity_id="invite:1")


@case("wrong_assignment")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    placed(edge)
    return edge.post("controls", cell_id="c-1", epoch=2, generation=1)


@case("relay_capacity_exhausted")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.live_cell(capacity_units=1)
    edge.assign("u/1")
    return edge.assign("u/2")


@case("host_activities_exhausted")
def _(edge: Running, patch: pytest.MonkeyPatch) -> httpx.Response:
    patch.setattr("domain.relay.activity.LEASES_PER_HOST_MAX", 1)
    edge.live_cell()
    edge.assign()
    return edge.post("activities", activity_id="a", kind="invite", cell_id="c-1")


@case("relay_connection_headroom_exhausted")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.configure(connection_limit=LIMIT)
    edge.beat(connections=report(1, 1))
    edge.assign()
    edge.post("activities/releases", activity_id="control-pending:1")
    edge.operator.put("/v1/cells/c-1/admission", json={"admission": "existing-only"})
    edge.beat(connections=report(400, 2))
    return edge.assign()


@case("idempotency_key_reused")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    edge.live_cell()
    path, headers = "/v1/hosts/u/h/assignment", {"Idempotency-Key": "k"}
    edge.live_cell()
    edge.operator.post(path, json={}, headers=headers)
    return edge.operator.post(path, json={"preferred_region": "asia-east2"}, headers=headers)


@case("broken_json")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    headers = {"Content-Type": "application/json"}
    return edge.operator.post("/v1/hosts/u/h/assignment", content=b'{"a":', headers=headers)


@case("bad_cursor")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.get("/v1/log?cursor=Zm9v")


@case("bad_idempotency_key")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    headers = {"Idempotency-Key": "two words"}
    return edge.operator.post("/v1/hosts/u/h/assignment", json={}, headers=headers)


@case("bad_if_match")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.put("/v1/cells/c-1", json=BODY, headers={"If-Match": "1"})


@case("version_mismatch")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.put("/v1/cells/c-1", json=BODY, headers={"If-Match": '"3"'})


@case("token_not_accepted")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.client(None).get("/v1/cells")


@case("role_not_allowed")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.client("auditor").put("/v1/cells", json={"cells": []})


@case("route_not_found")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.get("/problems/no_such_problem")


@case("method_not_allowed")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.delete("/v1/cells/c-1")


@case("clock_goes_back")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.put("/v1/clock", json={"now_ms": NOW - 1})


@case("body_too_large")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.post("assignment", preferred_region="x" * 65_536)


@case("content_type_not_json")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.post("/v1/hosts/u/h/assignment", content=b"{}")


@case("invalid_request")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.post("assignment", preferred_region="mars")


@case("position_not_reached")
def _(edge: Running, _: pytest.MonkeyPatch) -> httpx.Response:
    return edge.operator.get("/v1/cells?min_position=1&wait_ms=1")


@case("too_many_streams")
def _(edge: Running, patch: pytest.MonkeyPatch) -> httpx.Response:
    patch.setattr("app.http.events.STREAMS_MAX", 0)
    return edge.operator.get("/v1/log/stream")


def failing(edge: Running, patch: pytest.MonkeyPatch, error: Exception) -> httpx.Response:
    async def execute(_: object) -> None:
        raise error

    patch.setattr(edge.service.writer, "execute", execute)
    return edge.assign()


@case("queue_full")
def _(edge: Running, patch: pytest.MonkeyPatch) -> httpx.Response:
    return failing(edge, patch, QueueFull())


@case("log_unavailable")
def _(edge: Running, patch: pytest.MonkeyPatch) -> httpx.Response:
    return failing(edge, patch, Unavailable("away"))


@case("internal_error")
def _(edge: Running, patch: pytest.MonkeyPatch) -> httpx.Response:
    return failing(edge, patch, RuntimeError("a mistake"))
