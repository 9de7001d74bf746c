"""A stream ends when its token is revoked, and says so.

The token was once asked for only when the stream began: a revoked one read on for ever.
"""

import asyncio
import itertools
from pathlib import Path

import psycopg
import pytest
from starlette.types import Message

from adapters.postgres import tokens
from app.http.events import EventStream
from app.http.problems import TokenNotAccepted
from app.tokens import CACHE_SECONDS_MAX
from tests.cli.terminal import tenure
from tests.http.running import NOW, running
from tests.http.test_stream import events

PINGS_MAX = 200
"""A stream that goes on for so long does not end."""


def test_an_open_stream_ends_with_its_token(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventStream, "ask_again_seconds", 0.05)
    monkeypatch.setattr(EventStream, "ping_seconds", 0.05)
    with running(database, tmp_path) as edge:
        edge.configure("c-1")
        head = edge.head()
        token, token_id = edge.token("auditor")
        authorized = {"Authorization": f"Bearer {token}"}
        with edge.client(None).stream("GET", "/v1/log/stream", headers=authorized) as answer:
            told = events(answer.iter_lines())
            assert [next(told).get("id") for _ in range(head + 1)][-1] == str(head)
            assert next(told) == {"comment": "ping"}
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute(tokens.REVOKE.encode(), {"at": NOW, "token_id": token_id})
            later = edge.service.tokens._seconds() + CACHE_SECONDS_MAX
            monkeypatch.setattr(edge.service.tokens, "_seconds", lambda: later)
            (*pings, last) = itertools.islice(told, PINGS_MAX)
            assert all(it == {"comment": "ping"} for it in pings)
            assert last == {"event": "token_not_accepted", "data": str(head)}


def test_a_stream_that_is_busy_sending_ends_too(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventStream, "ask_again_seconds", 0.0)
    sent: list[Message] = []

    async def scenario() -> None:
        sending, never = asyncio.Event(), asyncio.Event()

        async def send(message: Message) -> None:
            sent.append(message)
            if b"event: entry" in message.get("body", b""):
                sending.set()
                await never.wait()

        async def receive() -> Message:
            await never.wait()
            return {"type": "http.disconnect"}

        async def allow() -> None:
            await sending.wait()
            raise TokenNotAccepted

        stream = EventStream(edge.service, 0, None, None, lambda it: it.state.encode(), allow)
        await stream({"type": "http"}, receive, send)

    with running(database, tmp_path) as edge:
        edge.configure("c-1")
        edge.run(scenario())
    assert sent[-1]["body"] == b"event: token_not_accepted\ndata: 0\n\n"
    assert sent[-1]["more_body"] is False


def test_revoking_says_how_long_the_token_may_be_accepted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_ALLOW_UNSAFE_DURABILITY", "true")
    made = tenure("token", "create", "--role", "auditor", "--json", dsn=database).answer
    said = tenure("token", "revoke", made["token_id"], dsn=database).out
    assert "for 5 more seconds; open log streams end within 15" in said
