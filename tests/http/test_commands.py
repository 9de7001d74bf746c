"""What every command's request has in common: keys, bodies, ids, traces."""

import socket

import orjson
import pytest

from tests.http.running import NOW, Running

PATH = "/v1/hosts/u/h/assignment"
JSON = {"Content-Type": "application/json"}
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"


def test_the_same_key_gets_the_first_answer_and_changes_nothing(edge: Running) -> None:
    edge.live_cell()
    headers = {"Idempotency-Key": "k-1"}
    first = edge.operator.post(PATH, json={}, headers=headers)
    head = edge.head()
    edge.clock.set(NOW + 30_000)
    again = edge.operator.post(PATH, content=b" { } ", headers={**headers, **JSON})
    assert again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Log-Position"] == first.headers["Log-Position"]
    assert "Idempotency-Replayed" not in first.headers
    assert edge.head() == head


def test_a_refusal_is_replayed_too(edge: Running) -> None:
    path, headers = "/v1/hosts/u/h/assignment/cell", {"Idempotency-Key": "k-1"}
    first = edge.operator.put(path, json={"target_cell_id": "c-1"}, headers=headers)
    edge.live_cell()
    edge.assign()
    again = edge.operator.put(path, json={"target_cell_id": "c-1"}, headers=headers)
    assert (first.status_code, again.status_code) == (404, 404)
    assert again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("path", "body"),
    [(PATH, {"preferred_region": "asia-east2"}), ("/v1/hosts/u/other/assignment", {})],
)
def test_a_key_is_for_one_request(edge: Running, path: str, body: dict[str, str]) -> None:
    edge.live_cell()
    headers = {"Idempotency-Key": "k-1"}
    edge.operator.post(PATH, json={}, headers=headers)
    refused = edge.operator.post(path, json=body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")


def test_a_key_belongs_to_its_caller(edge: Running) -> None:
    edge.live_cell()
    headers = {"Idempotency-Key": "k-1"}
    edge.operator.post(PATH, json={}, headers=headers)
    own = edge.client("client", "u/h").post(PATH, json={}, headers=headers)
    assert own.status_code == 200
    assert "Idempotency-Replayed" not in own.headers
    renewed_token = edge.client("client", "u/h").post(PATH, json={}, headers=headers)
    assert renewed_token.headers["Idempotency-Replayed"] == "true"


def test_ids_of_requests_and_traces_are_returned_and_stored(edge: Running) -> None:
    sent = {"X-Request-ID": "req-7", "traceparent": TRACEPARENT}
    body = {"cell_url": "https://c-1.example", "capacity_units": 1, "admission": "general"}
    answer = edge.operator.put("/v1/cells/c-1", json=body, headers=sent)
    assert answer.headers["X-Request-ID"] == "req-7"
    assert answer.headers["traceparent"] == TRACEPARENT
    meta = edge.operator.get("/v1/log").json()["entries"][0]["state"]["meta"]
    assert (meta["correlation_id"], meta["trace_id"]) == ("req-7", TRACE_ID)
    assert meta["actor"].startswith("operator:")


@pytest.mark.parametrize("request_id", ["", "two words", "x" * 129, "{}"])
def test_other_request_ids_are_replaced(unchanged: Running, request_id: str) -> None:
    answer = unchanged.client(None).get("/livez", headers={"X-Request-ID": request_id})
    assert answer.headers["X-Request-ID"].startswith("id-")


@pytest.mark.parametrize(
    "traceparent", ["", "00-abc", TRACEPARENT.replace(TRACE_ID, "0" * 32), "ff" + TRACEPARENT[2:]]
)
def test_other_traces_are_ignored(unchanged: Running, traceparent: str) -> None:
    answer = unchanged.client(None).get("/livez", headers={"traceparent": traceparent})
    assert "traceparent" not in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"preferred_region": "\xed\xa0\x80"}',
        b'{"preferred_region": "\\ud800"}',
        b"[" * 100_00,
        b'{"preferred_region": NaN}',
    ],
)
def test_what_is_not_json_is_broken(unchanged: Running, body: bytes) -> None:
    answer = unchanged.operator.post(PATH, content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    if not body.endswith(b"NaN}"):
        assert answer.json()["code"] == "broken_json"


@pytest.mark.parametrize(
    ("path", "body", "at"),
    [
        ("activity-counts", {"kind": "invite", "delta": "1"}, "body.delta"),
        ("activity-counts", {"kind": "invite", "delta": 1.0}, "body.delta"),
        ("activity-counts", {"kind": "invite", "delta": True}, "body.delta"),
        ("activity-counts", {"kind": "invite", "delta": 2}, "body.delta"),
        ("activity-counts", {"kind": "party", "delta": 1}, "body.kind"),
        ("controls", {"cell_id": "c", "epoch": 1.5, "generation": 1}, "body.epoch"),
        ("controls", {"cell_id": "c", "epoch": 2**53, "generation": 1}, "body.epoch"),
        ("controls", {"cell_id": "c", "epoch": -1, "generation": 1}, "body.epoch"),
        ("controls", {"cell_id": "c/d", "epoch": 1, "generation": 1}, "body.cell_id"),
        ("controls", {"cell_id": "c\n", "epoch": 1, "generation": 1}, "body.cell_id"),
        ("activities/releases", {"activity_id": "a\u0000"}, "body.activity_id"),
        ("activities/releases", {"activity_id": "a" * 1_025}, "body.activity_id"),
        ("activities/releases", {"activity_id": "a", "more": 1}, "body.more"),
        ("activities/releases", {}, "body.activity_id"),
        ("activities/releases", [], "body"),
    ],
)
def test_a_wrong_form_says_where_and_not_what(
    unchanged: Running, path: str, body: object, at: str
) -> None:
    answer = unchanged.operator.post(
        f"/v1/hosts/u/h/{path}", content=orjson.dumps(body), headers=JSON
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [it["at"] for it in answer.json()["errors"]] == [at]


@pytest.mark.parametrize(
    "limit",
    [
        {"hard_cap_connections": 600},
        {"unobserved_bound_connections": 5},
        {"hard_cap_connections": 600, "unobserved_bound_connections": 500},
        {"hard_cap_connections": 601, "unobserved_bound_connections": 5},
        {"hard_cap_connections": 600.0, "unobserved_bound_connections": 5},
    ],
)
def test_a_connection_limit_is_whole_or_absent(unchanged: Running, limit: dict[str, float]) -> None:
    body = {"cell_url": "u", "capacity_units": 1, "admission": "general"}
    answer = unchanged.operator.put("/v1/cells/c-1", json={**body, "connection_limit": limit})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("path", ["/v1/hosts/a%20b/h/assignment", "/v1/hosts/u/h.h/assignment"])
def test_ids_in_paths_have_a_form(unchanged: Running, path: str) -> None:
    answer = unchanged.operator.post(path, json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_a_body_of_unknown_length_is_limited_too(unchanged: Running) -> None:
    def chunks() -> "list[bytes]":
        return [b'{"preferred_region":"', *[b"x" * 10_000] * 7, b'"}']

    answer = unchanged.operator.post(PATH, content=iter(chunks()), headers=JSON)
    assert (answer.status_code, answer.json()["bytes_max"]) == (413, 65_536)


@pytest.mark.parametrize("content_type", ["text/json", "application/jsonx", "", "multipart/x"])
def test_bodies_are_json_by_their_content_type(unchanged: Running, content_type: str) -> None:
    answer = unchanged.operator.post(PATH, content=b"{}", headers={"Content-Type": content_type})
    assert answer.status_code == 415


def test_a_content_type_may_name_its_character_set(edge: Running) -> None:
    edge.live_cell()
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert edge.operator.post(PATH, content=b"{}", headers=headers).status_code == 200


def test_a_connection_cut_in_a_body_changes_nothing(edge: Running) -> None:
    edge.live_cell()
    before = edge.head()
    host, port = edge.url.removeprefix("http://").split(":")
    token, _ = edge.token("operator")
    with socket.create_connection((host, int(port))) as cut:
        cut.sendall(
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{".encode()
        )
    assert edge.head() == before
    assert edge.assign().status_code == 200
