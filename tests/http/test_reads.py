"""Reading what was written, and the log itself."""

import threading
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from adapters.entry import GENESIS, Entry, Head, first_broken
from tests.http.running import Running


def test_a_read_includes_the_position_it_asks_for(edge: Running) -> None:
    edge.live_cell()
    position = edge.assign().headers["Log-Position"]
    found = edge.operator.get(f"/v1/hosts/u/h/assignment?min_position={position}&wait_ms=5000")
    assert found.status_code == 200
    assert int(found.headers["Log-Position"]) >= int(position)


def test_a_read_waits_for_a_position_that_is_coming(edge: Running) -> None:
    edge.live_cell()
    wanted = edge.head() + 1
    answers: list[httpx.Response] = []

    def read() -> None:
        path = f"/v1/hosts/u/h/assignment?min_position={wanted}&wait_ms=10000"
        with httpx.Client(base_url=edge.url, headers=edge.operator.headers, timeout=20) as client:
            answers.append(client.get(path))

    reader = threading.Thread(target=read)
    reader.start()
    edge.assign()
    reader.join()
    assert answers[0].status_code == 200


@pytest.mark.parametrize("query", ["min_position=-1", "min_position=x", "wait_ms=10001"])
def test_waiting_has_bounds(unchanged: Running, query: str) -> None:
    assert unchanged.operator.get(f"/v1/cells?{query}").status_code == 422


def pages(edge: Running, path: str) -> list[dict[str, Any]]:
    """All entries, by following the links."""
    entries: list[dict[str, Any]] = []
    while True:
        page = edge.operator.get(path)
        found = page.json()["entries"]
        if not found:
            return entries
        entries += found
        path = page.links["next"]["url"]
        assert page.json()["next"] in path


def test_pages_hold_the_whole_log_and_prove_it(edge: Running) -> None:
    for number in range(5):
        edge.configure(f"c-{number}")
    entries = pages(edge, "/v1/log?limit=2")
    assert [it["position"] for it in entries] == list(range(1, edge.head() + 1))
    head = edge.operator.get("/v1/log/head").json()
    assert entries[-1]["chain"] == head["chain"]
    assert entries[-1]["recorded_at"] == head["recorded_at"]
    stored = [
        Entry(
            it["position"],
            it["stream"],
            it["version"],
            it["topic"],
            httpx.Response(200, json=it["state"]).text,
            _microseconds(it["recorded_at"]),
            bytes.fromhex(it["chain"]),
        )
        for it in entries
    ]
    assert first_broken(Head(0, GENESIS, 0), stored) is None


def _microseconds(text: str) -> int:
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def test_one_stream_or_topic(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.live_cell("c-2")
    of_cell = pages(edge, "/v1/log?stream=cell:c-2&limit=1")
    assert [it["topic"] for it in of_cell] == ["cell.registered", "cell.started"]
    started = pages(edge, "/v1/log?topic=cell.started&limit=1")
    assert [it["stream"] for it in started] == ["cell:c-1", "cell:c-2"]
    assert pages(edge, "/v1/log?topic=cell.started&stream=cell:c-9") == []


def test_a_full_page_never_changes_and_says_so(edge: Running) -> None:
    edge.configure("c-1")
    full = edge.operator.get("/v1/log?limit=2")
    assert full.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    edge.configure("c-2")
    again = edge.operator.get("/v1/log?limit=2")
    assert (again.content, again.headers["ETag"]) == (full.content, full.headers["ETag"])
    kept = edge.operator.get("/v1/log?limit=2", headers={"If-None-Match": full.headers["ETag"]})
    assert (kept.status_code, kept.content) == (304, b"")
    short = edge.operator.get("/v1/log?limit=9")
    assert short.headers["Cache-Control"] == "no-store"
    assert "ETag" not in short.headers


@pytest.mark.parametrize(
    "cursor", ["x", "YWZ0ZXI6", "YWZ0ZXI6LTE", "YWZ0ZXI6MDE", "%C3%A9", "===="]
)
def test_only_our_cursors_are_taken(unchanged: Running, cursor: str) -> None:
    answer = unchanged.operator.get(f"/v1/log?cursor={cursor}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "after=-1", "stream=%00", "topic=%0a"])
def test_pages_have_bounds(unchanged: Running, query: str) -> None:
    assert unchanged.operator.get(f"/v1/log?{query}").status_code == 422


def test_an_unknown_query_parameter_is_refused(unchanged: Running) -> None:
    answer = unchanged.operator.get("/v1/cells?min_positon=7")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert unchanged.operator.get("/v1/cells?min_position=0").status_code == 200
