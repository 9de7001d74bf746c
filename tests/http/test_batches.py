"""Many commands in one request."""

import socket
from collections.abc import Mapping
from typing import Any

import httpx
import orjson
import psycopg
import pytest

from adapters.ports import Unavailable
from app.http.batch import BATCH_COMMANDS_MAX
from domain.limits import ACTIVITY_LEASE_MS
from tests.http.running import NOW, Running, running
from tests.waiting import until

JsonObject = dict[str, Any]


def command(operation: str, body: object, host: str = "u/h", **more: Any) -> JsonObject:
    user_id, relay_host_id = host.split("/")
    path = {"user_id": user_id, "relay_host_id": relay_host_id}
    return {"operation": operation, "path": path, "body": body, **more}


def assign(host: str = "u/h", **more: Any) -> JsonObject:
    return command("Assign", {}, host, **more)


def send(client: httpx.Client, *commands: JsonObject) -> list[JsonObject]:
    answer = client.post("/v1/commands", json={"commands": commands})
    assert answer.status_code == 200, answer.text
    results: list[JsonObject] = answer.json()["results"]
    assert len(results) == len(commands)
    return results


def codes(results: list[JsonObject]) -> list[str | None]:
    return [it.get("problem", {}).get("code") for it in results]


def test_commands_are_decided_in_order(edge: Running) -> None:
    activity = {"activity_id": "a", "kind": "invite", "cell_id": "c-1"}
    release = command("ReleaseActivity", {"activity_id": "a"})
    results = send(
        edge.operator,
        {"operation": "ReconcileCells", "body": {"cells": [cell()], "disable_missing": True}},
        {"operation": "RecordHeartbeat", "path": {"cell_id": "c-1"}, "body": beat()},
        assign(),
        command("AcquireActivity", activity),
        release,
        release,
    )
    assert [it["status"] for it in results] == [204, 204, 200, 204, 200, 200]
    positions = [it["position"] for it in results]
    assert positions == sorted(positions)
    assert positions[-1] == edge.head()
    assert results[2]["answer"]["lease_expires_at"] == NOW + ACTIVITY_LEASE_MS
    assert [it["answer"] for it in results[4:]] == [{"released": True}, {"released": False}]
    assert "answer" not in results[0]


def cell() -> JsonObject:
    return {"cell_id": "c-1", "cell_url": "https://c-1.example", "capacity_units": 100}


def beat() -> JsonObject:
    return {
        "cell_url": "https://c-1.example",
        "cell_incarnation": "boot",
        "started_at": NOW - 1,
        "ready": True,
        "observed_requests": 0,
    }


def test_each_answer_is_that_of_its_own_request(edge: Running) -> None:
    edge.live_cell()
    placed, missing = send(
        edge.operator,
        assign(idempotency_key="k-1"),
        command("RebalanceDormant", {"target_cell_id": "c-2"}, "a b/c", idempotency_key="k-2"),
    )
    assert missing["problem"]["code"] == "invalid_request"
    alone = edge.operator.post(
        "/v1/hosts/u/h/assignment", json={}, headers={"Idempotency-Key": "k-1"}
    )
    assert alone.headers["Idempotency-Replayed"] == "true"
    assert alone.json() == placed["answer"]
    assert alone.headers["Log-Position"] == str(placed["position"])


BAD: Mapping[str, tuple[JsonObject, int, str]] = {
    "an unknown operation": ({"operation": "Explode"}, 404, "unknown_operation"),
    "a query": (command("Resolve", None), 404, "unknown_operation"),
    "several turns": (
        {"operation": "Sweep", "path": {"sweep": "activity"}},
        404,
        "unknown_operation",
    ),
    "a bad path": (assign("a b/h"), 422, "invalid_request"),
    "a missing parameter": ({"operation": "Assign", "body": {}}, 422, "invalid_request"),
    "an unknown parameter": (
        {"operation": "ReconcileCells", "path": {"x": "y"}, "body": {"cells": []}},
        422,
        "invalid_request",
    ),
    "a bad body": (command("Assign", {"preferred_region": "mars"}), 422, "invalid_request"),
    "no body": (command("Assign", None), 422, "invalid_request"),
    "a bad key": (assign(idempotency_key="two words"), 400, "bad_idempotency_key"),
    "a bad condition": (
        {
            "operation": "ConfigureCell",
            "path": {"cell_id": "c-1"},
            "body": {"cell_url": "u", "capacity_units": 1, "admission": "general"},
            "if_match": "1",
        },
        400,
        "bad_if_match",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_command_fails_alone(edge: Running, name: str) -> None:
    bad, status, code = BAD[name]
    edge.live_cell()
    before, failed, after = send(edge.operator, assign("u/1"), bad, assign("u/2"))
    assert (before["status"], after["status"]) == (200, 200)
    assert after["position"] > before["position"]
    problem = failed["problem"]
    assert (failed["status"], problem["status"], problem["code"]) == (status, status, code)
    assert problem["instance"] == "/v1/commands#/commands/1"
    assert "position" not in failed


def test_a_refused_command_fails_alone_and_names_its_own_path(edge: Running) -> None:
    edge.live_cell()
    rebalance = command("RebalanceDormant", {"target_cell_id": "c-1"}, "u|v/1")
    placed, refused = send(edge.operator, assign(), rebalance)
    assert placed["status"] == 200
    assert (refused["status"], refused["position"]) == (404, placed["position"])
    assert refused["problem"]["code"] == "assignment_not_found"
    assert refused["problem"]["instance"] == "/v1/hosts/u%7Cv/1/assignment/cell"


def test_roles_and_what_tokens_are_bound_to_are_judged_for_each(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.live_cell("c-2")
    edge.assign("u/1")
    cell_id = edge.operator.get("/v1/hosts/u/1/assignment").json()["cell_id"]
    other = next(it for it in ("c-1", "c-2") if it != cell_id)
    client = send(
        edge.client("client", "u/1"),
        assign("u/1"),
        assign("u/2"),
        command("RebalanceDormant", {"target_cell_id": other}, "u/1"),
    )
    assert codes(client) == [None, "role_not_allowed", "role_not_allowed"]
    count = command("ChangeActivity", {"kind": "invite", "delta": 1}, "u/1")
    renewals = {"operation": "RenewControls", "path": {"cell_id": cell_id}, "body": {"items": []}}
    asked = (count, renewals, assign("u/1"))
    mine = send(edge.client("cell", cell_id), *asked)
    theirs = send(edge.client("cell", other), *asked)
    assert codes(mine) == [None, None, "role_not_allowed"]
    assert codes(theirs) == ["role_not_allowed"] * 3
    assert edge.client("auditor").post("/v1/commands", json={"commands": []}).status_code == 403


def test_a_repeat_after_a_dropped_connection_applies_nothing_twice(edge: Running) -> None:
    edge.live_cell()
    commands = [assign(f"u/{it}", idempotency_key=f"k-{it}") for it in range(64)]
    body = orjson.dumps({"commands": commands})
    host, port = edge.url.removeprefix("http://").split(":")
    authorization = edge.operator.headers["Authorization"]
    before = edge.head()
    with socket.create_connection((host, int(port))) as dropped:
        dropped.sendall(
            f"POST /v1/commands HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
    results = send(edge.operator, *commands)
    until(lambda: edge.head() >= before + 64)
    again = send(edge.operator, *commands)
    assert all(it["status"] == 200 for it in results)
    assert [it["answer"] for it in again] == [it["answer"] for it in results]
    assert [it["position"] for it in again] == [it["position"] for it in results]
    assert all(it["replayed"] is True for it in again)
    topics = [it["topic"] for it in edge.operator.get("/v1/log?limit=1000").json()["entries"]]
    assert topics.count("host.placed") == 64


def test_one_key_twice_in_a_batch_is_one_command(edge: Running) -> None:
    edge.live_cell()
    first, again, other = send(
        edge.operator,
        assign(idempotency_key="k"),
        assign(idempotency_key="k"),
        assign("u/other", idempotency_key="k"),
    )
    assert again == {**first, "replayed": True}
    assert other["problem"]["code"] == "idempotency_key_reused"


def test_a_repeated_refusal_is_the_first_one(edge: Running) -> None:
    rebalance = command("RebalanceDormant", {"target_cell_id": "c-1"}, idempotency_key="k")
    (first,) = send(edge.operator, rebalance)
    (again,) = send(edge.operator, rebalance)
    assert again == {**first, "replayed": True}


def test_a_batch_costs_few_turns(edge: Running) -> None:
    edge.live_cell()

    def turns() -> int:
        with psycopg.connect(edge.dsn) as connection:
            row = connection.execute("SELECT last_value FROM writer_turns").fetchone()
        assert row is not None
        return int(row[0])

    before = turns()
    results = send(edge.operator, *[assign(f"u/{it}") for it in range(64)])
    assert all(it["status"] == 200 for it in results)
    assert turns() - before <= 4


def test_a_batch_has_limits(unchanged: Running) -> None:
    def status(commands: object) -> int:
        return unchanged.operator.post("/v1/commands", json={"commands": commands}).status_code

    unknown = {"operation": "Explode"}
    assert status([unknown] * BATCH_COMMANDS_MAX) == 200
    assert status([unknown] * (BATCH_COMMANDS_MAX + 1)) == 422
    assert status([{"operation": 1}]) == 422
    assert status([{**unknown, "more": 1}]) == 422
    assert status([{**unknown, "body": "x" * 1_048_576}]) == 413
    assert status([]) == 200


def test_the_limit_of_a_batchs_body_is_a_setting(database: str, tmp_path: Any) -> None:
    with running(database, tmp_path, batch_body_bytes_max=1_024) as edge:
        commands = [{"operation": "x" * 1_024}]
        answer = edge.operator.post("/v1/commands", json={"commands": commands})
        assert (answer.status_code, answer.json()["bytes_max"]) == (413, 1_024)


def test_a_full_queue_takes_none_of_a_batch(edge: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    edge.live_cell()
    head = edge.head()
    monkeypatch.setattr(edge.service.writer, "_waiting_max", 2)
    commands = [assign(f"u/{it}") for it in range(3)]
    answer = edge.operator.post("/v1/commands", json={"commands": commands})
    assert (answer.status_code, answer.json()["code"]) == (503, "queue_full")
    assert answer.headers["Retry-After"] == "1"
    assert edge.head() == head
    assert codes(send(edge.operator, *commands[:2])) == [None, None]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Unavailable("away"), 503, "log_unavailable"),
        (ZeroDivisionError("a mistake"), 500, "internal_error"),
    ],
)
def test_what_goes_wrong_with_one_command_is_its_own_problem(
    edge: Running, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    edge.live_cell()
    edge.assign("u/1")
    cell = edge.client("cell", "c-1")

    async def place(_: object) -> None:
        raise error

    monkeypatch.setattr(edge.service.reads, "place", place)
    count = command("ChangeActivity", {"kind": "invite", "delta": 1}, "u/1")
    renewals = {"operation": "RenewControls", "path": {"cell_id": "c-1"}, "body": {"items": []}}
    failed, done = send(cell, count, renewals)
    assert (failed["status"], failed["problem"]["code"]) == (status, code)
    assert done["status"] == 200
