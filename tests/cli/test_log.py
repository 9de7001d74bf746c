"""`tenure log`: head, verify, tail."""

import os
import signal
import subprocess
import sys

import orjson

from tests.cli.terminal import tenure
from tests.projections.logs import change, fleet


def test_head_can_be_written_down_and_checked_later(dsn: str) -> None:
    head = tenure("log", "head", "--json", dsn=dsn).answer
    written = tenure("log", "head", dsn=dsn).out.splitlines()[0]
    assert written == f"{head['position']}:{head['chain']}"
    with fleet(dsn) as it:
        it.place(100, 2)
    verified = tenure("log", "verify", "--head", written, "--json", dsn=dsn)
    assert verified.status == 0
    assert verified.answer["intact"]
    assert verified.answer["position"] > head["position"]


def test_verify_names_a_tampered_position(dsn: str) -> None:
    change(dsn, "UPDATE log SET state = convert_to('{}', 'UTF8') WHERE position = 7")
    said = tenure("log", "verify", "--json", dsn=dsn)
    assert said.status == 1
    assert said.answer == {"intact": False, "first_bad_position": 7}
    assert said.err == "error: the chain is broken at position 7\n"


def test_verify_finds_a_cut_tail_only_with_a_head(dsn: str) -> None:
    written = tenure("log", "head", dsn=dsn).out.splitlines()[0]
    position = int(written.partition(":")[0])
    assert change(dsn, f"DELETE FROM log WHERE position > {position - 2}") == 2
    assert tenure("log", "verify", dsn=dsn).status == 0
    said = tenure("log", "verify", "--head", written, dsn=dsn)
    assert said.status == 1
    assert "its tail was cut" in said.err


def test_verify_refuses_a_malformed_head(dsn: str) -> None:
    said = tenure("log", "verify", "--head", "12", dsn=dsn)
    assert (said.status, said.out) == (1, "")
    assert "POSITION:CHAIN" in said.err


def test_tail_prints_what_is_there(dsn: str) -> None:
    said = tenure("log", "tail", "--no-follow", "--after", "3", "--json", dsn=dsn)
    lines = [orjson.loads(line) for line in said.out.splitlines()]
    head = tenure("log", "head", "--json", dsn=dsn).answer
    assert [it["position"] for it in lines] == list(range(4, head["position"] + 1))
    assert lines[-1]["chain"] == head["chain"]
    assert lines[-1]["meta"]["actor"] == "test"
    assert len(tenure("log", "tail", "--no-follow", dsn=dsn).out.splitlines()) == 10


def test_tail_follows_until_it_is_told_to_end(dsn: str) -> None:
    command = "from app.cli.main import main; main()"
    words = ["log", "tail", "--json", "--database-url", dsn]
    with subprocess.Popen(
        [sys.executable, "-c", command, *words], stdout=subprocess.PIPE, env=os.environ
    ) as process:
        assert process.stdout is not None
        seen = [orjson.loads(process.stdout.readline())["position"] for _ in range(10)]
        with fleet(dsn) as it:
            it.place(200, 1)
        seen += [orjson.loads(process.stdout.readline())["position"] for _ in range(4)]
        assert seen == list(range(seen[0], seen[0] + 14))
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_a_host_is_shown_at_any_version_of_its_stream(dsn: str) -> None:
    host = ("audit", "host", "user-0", "desktop-1")
    found = tenure(*host, "--json", dsn=dsn).answer
    assert found["version"] >= 2
    first = tenure(*host, "--version", "1", "--json", dsn=dsn).answer
    assert (first["version"], first["epoch"]) == (1, 1)
    assert list(first["leases"]) == ["control-pending:1"]
    assert "control-pending:1" in tenure(*host, dsn=dsn).out


def test_a_host_that_never_was_is_told(dsn: str) -> None:
    said = tenure("audit", "host", "nobody", "nowhere", dsn=dsn)
    assert (said.status, said.err) == (
        1,
        "error: the log tells nothing of this host at this version\n",
    )
