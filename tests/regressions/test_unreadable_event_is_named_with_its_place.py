"""An event that this code cannot read is named with its place and with what to do.

Rebuilding, verifying, auditing and serving named its topic alone; one of a known topic whose fields
did not fit was not even called an event, but told as if a setting of that name were wrong.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventsourcing.persistence import StoredEvent

from adapters.postgres.recorder import PostgresRecorder
from tests.cli.terminal import tenure
from tests.http.running import Running, running

COMMANDS = (
    ("projections", "rebuild", "--all"),
    ("projections", "verify", "--all"),
    ("audit", "host", "u", "h"),
    ("audit", "snapshot", "--at", "5"),
)
STREAM = "assignment:u/h"
STATE = b'{"v":1,"meta":{"command_id":"c","actor":"a"},"event":{"at":0,"activity_id":"s3cret"}}'


@pytest.fixture
def edge(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A service whose host was placed at position 4."""
    monkeypatch.setenv("TENURE_ALLOW_UNSAFE_DURABILITY", "true")
    with running(database, tmp_path) as it:
        it.live_cell()
        assert it.assign().status_code == 200
        yield it


def append(dsn: str, topic: str) -> None:
    """What newer code, or code with a mistake, would write next for the host."""
    assert PostgresRecorder(dsn).insert_events([StoredEvent(STREAM, 2, topic, STATE)]) == [5]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("host.teleported", "no such event is known"),
        ("activity.released", "not of this form, see cell_id, counts, epoch, lease, "),
    ],
)
def test_every_command_says_where_it_is_and_what_to_do(
    edge: Running, words: tuple[str, ...], topic: str, reason: str
) -> None:
    append(edge.dsn, topic)
    said = tenure(*words, dsn=edge.dsn)
    assert (said.status, said.out) == (1, "")
    told = f"version 2 of {STREAM}: {topic} at position 5, stored in version 1: {reason}"
    assert told in said.err
    assert "Nothing was changed. Deploy the newer code" in said.err
    assert "s3cret" not in said.err


def test_the_service_says_it_in_its_readiness_and_its_log(
    edge: Running, caplog: pytest.LogCaptureFixture
) -> None:
    append(edge.dsn, "host.teleported")
    with caplog.at_level(logging.CRITICAL):
        assert edge.assign().status_code == 503
    checks = edge.client(None).get("/readyz?verbose").json()["checks"]
    (writer,) = (it for it in checks if it["name"] == "writer")
    assert "host.teleported at position 5" in writer["detail"]
    assert "Deploy the newer code" in writer["detail"]
    assert "u/h" not in writer["detail"], "anybody may ask whether the service is ready"
    (line,) = (it for it in caplog.records if it.name == "tenure.writer")
    told = {"position": 5, "stream": STREAM, "version": 2, "topic": "host.teleported"}
    assert {name: vars(line)[name] for name in told} == told
