"""`tenure replay`: recorded traces through HTTP, end to end."""

import gzip
from pathlib import Path

import orjson
import psycopg
import pytest

from adapters.postgres.server import Server
from app.cli.replay_requests import NOT_HTTP, ROUTES
from tests.cli.terminal import Said, tenure
from tests.conformance.operations import COMMANDS, QUESTIONS, SWEEPS
from tests.conformance.traces import VECTORS

WHOLE = "dir-19-reservations-claim-release.jsonl"
STOPS = "dir-13-activity-leases.jsonl"
RANDOM = "rnd-025-placement.jsonl.gz"


def replay(server: Server, *paths: Path) -> Said:
    return tenure("replay", *map(str, paths), "--json", dsn=server.dsn)


def test_every_known_operation_has_a_route() -> None:
    assert {*ROUTES} == {*COMMANDS, *SWEEPS, *QUESTIONS}
    assert not {*NOT_HTTP} & {*ROUTES}


def test_recorded_traces_are_answered_as_recorded(server: Server) -> None:
    said = replay(server, *(VECTORS / name for name in (WHOLE, STOPS, RANDOM)))
    assert said.status == 0
    whole, stops, random = said.answer["traces"]
    assert (whole["reached"], whole["stopped_at"]) == (whole["steps"], None)
    assert (stops["reached"], stops["stopped_at"]) == (13, "startEvacuation")
    for it in (whole, stops, random):
        assert it["different"] == 0
        assert it["same"] + len(it["skipped"]) == it["reached"] > 0
        assert {"cell_id", "reserved_units", "capacity_units", "headroom"} <= set(it["cells"][0])
    with psycopg.connect(server.dsn) as connection:
        left = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'tenure_replay_%'"
        ).fetchall()
    assert left == []


def test_the_first_difference_is_shown(server: Server, tmp_path: Path) -> None:
    header, first, second, *_ = (VECTORS / WHOLE).read_bytes().splitlines()
    step = orjson.loads(second)
    wrong = {**{name: step[name] for name in step if name not in ("ok", "err")}, "ok": "nothing"}
    restart = {"i": 2, "now": step["now"], "op": "restart", "args": {}, "ok": None}
    trace = tmp_path / "wrong.jsonl.gz"
    lines = [header, first, orjson.dumps(wrong), orjson.dumps(restart)]
    trace.write_bytes(gzip.compress(b"\n".join(lines)))
    said = replay(server, trace)
    assert said.status == 1
    (result,) = said.answer["traces"]
    assert (result["same"], result["different"], result["skipped"]) == (1, 1, ["restart"])
    difference = result["first_difference"]
    assert (difference["operation"], difference["given"]) == (step["op"], step["args"])
    assert difference["expected"] == {"ok": "nothing"}
    assert difference["got"] == {"ok": step["ok"]}


@pytest.mark.parametrize("content", [None, b"", b"nonsense\n", b"{}\n"], ids=str)
def test_what_is_no_trace_is_refused(server: Server, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "trace.jsonl"
    if content is not None:
        path.write_bytes(content)
    said = replay(server, path)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("error: ")
