"""Following the log: server-sent events that come, go on where they ended, and end themselves."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from starlette.types import Message

from app.http.events import EventStream
from tests.http.running import Running, running


def events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """The events of a stream; a comment is an event of its own."""
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name or "comment"] = value
        else:
            yield event
            event = {}


def following(edge: Running, query: str = "", **headers: str) -> Any:
    return edge.operator.stream("GET", f"/v1/log/stream{query}", headers=headers)


def test_what_was_written_and_what_comes_are_sent_in_order(edge: Running) -> None:
    edge.configure("c-1")
    with following(edge) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        told = events(answer.iter_lines())
        assert next(told) == {"comment": "following"}
        assert [next(told)["id"] for _ in range(2)] == ["1", "2"]
        other = httpx.Client(base_url=edge.url, headers=edge.operator.headers)
        with other:
            other.put("/v1/cells/c-1/admission", json={"enabled": False})
        event = next(told)
        assert (event["id"], event["event"]) == ("3", "entry")
        entry = orjson.loads(event["data"])
        assert entry["topic"] == "cell.admission_changed"
    assert entry == edge.operator.get("/v1/log?after=2").json()["entries"][0]


@pytest.mark.parametrize(
    ("query", "headers", "first"),
    [
        ("?after=2", {}, "3"),
        ("?after=1", {"Last-Event-ID": "3"}, "4"),
        ("?after=1", {"Last-Event-ID": "x"}, "2"),
        ("?stream=cell:c-2", {}, "3"),
        ("?topic=admission_selector.opened", {}, "2"),
    ],
)
def test_a_stream_begins_where_it_is_told(
    edge: Running, query: str, headers: dict[str, str], first: str
) -> None:
    for number in range(1, 4):
        edge.configure(f"c-{number}")
    with following(edge, query, **headers) as answer:
        told = events(answer.iter_lines())
        next(told)
        assert next(told)["id"] == first


def test_a_quiet_stream_pings(edge: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventStream, "ping_seconds", 0.05)
    with following(edge) as answer:
        told = events(answer.iter_lines())
        assert [next(told)["comment"] for _ in range(3)] == ["following", "ping", "ping"]


def test_streams_end_when_the_service_does(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as edge:
        client = edge.client("auditor")
        answers = [client.build_request("GET", "/v1/log/stream") for _ in range(20)]
        open_streams = [client.send(it, stream=True) for it in answers]
        told = [events(it.iter_lines()) for it in open_streams]
        assert all(next(it) == {"comment": "following"} for it in told)
        edge.leave()
        assert all(next(it)["event"] == "leaving" for it in told)
        assert all(next(it, None) is None for it in told)


def test_a_slow_reader_is_told_before_it_is_dropped(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge.configure("c-1")
    monkeypatch.setattr(EventStream, "slow_reader_seconds", 0.05)
    sent: list[Message] = []

    async def scenario() -> None:
        stalled = asyncio.Event()

        async def send(message: Message) -> None:
            sent.append(message)
            if b"event: entry" in message.get("body", b""):
                await stalled.wait()

        async def receive() -> Message:
            await stalled.wait()
            return {"type": "http.disconnect"}

        async def allow() -> None:
            pass

        stream = EventStream(edge.service, 0, None, None, lambda it: it.state.encode(), allow)
        await stream({"type": "http"}, receive, send)

    edge.run(scenario())
    assert sent[-1]["body"] == b"event: too_slow\ndata: 0\n\n"
    assert sent[-1]["more_body"] is False
