"""`tenure projections` and `tenure audit snapshot`."""

import hashlib
from pathlib import Path

import psycopg
import pytest

from projections.catalogue import PROJECTIONS
from tests.cli.terminal import tenure
from tests.projections.logs import change

NAMES = [it.name for it in PROJECTIONS]


def test_list_shows_rebuilds_and_what_they_keep(dsn: str) -> None:
    before = tenure("projections", "list", "--json", dsn=dsn).answer["projections"]
    assert [it["name"] for it in before] == NAMES
    assert {it["switched_at"] for it in before} == {None}
    rebuilt = tenure("projections", "rebuild", "cells", "--json", dsn=dsn)
    assert rebuilt.status == 0
    assert rebuilt.answer["differences"] == []
    assert rebuilt.answer["events_per_second"] > 0
    after = tenure("projections", "list", "--json", dsn=dsn).answer["projections"]
    assert after[0]["previous_kept_at"] == after[0]["switched_at"] == rebuilt.answer["position"]
    assert "previous kept" in tenure("projections", "list", dsn=dsn).out
    dropped = tenure("projections", "rebuild", "--all", "--drop-previous", "--json", dsn=dsn)
    assert dropped.answer == {"dropped": ["cells"]}


def test_rebuild_and_verify_all_say_what_they_did(dsn: str) -> None:
    rebuilt = tenure("projections", "rebuild", "--all", dsn=dsn)
    assert rebuilt.status == 0
    assert "every row equals the live one" in rebuilt.out
    verified = tenure("projections", "verify", "--all", "--json", dsn=dsn).answer
    assert (verified["equal"], verified["projections"]) == (True, NAMES)
    assert "rows equal the log" in tenure("projections", "verify", "assignments", dsn=dsn).out


def test_a_tampered_row_fails_both(dsn: str) -> None:
    change(dsn, "UPDATE assignments SET cell_id = 'c-9' WHERE user_id = 'user-2'")
    said = tenure("projections", "verify", "assignments", "--json", dsn=dsn)
    assert said.status == 1
    assert said.answer["differences"][0]["key"] == ["user-2", "desktop-1"]
    assert "first (user-2, desktop-1)" in said.err
    rebuilt = tenure("projections", "rebuild", "assignments", dsn=dsn)
    assert rebuilt.status == 1
    assert rebuilt.out == ""
    assert "differ from the log" in rebuilt.err
    accepted = tenure("projections", "rebuild", "assignments", "--accept-differences", dsn=dsn)
    assert accepted.status == 0
    assert tenure("projections", "verify", "--all", dsn=dsn).status == 0


@pytest.mark.parametrize("words", [(), ("nothing",), ("cells", "--all")], ids=str)
def test_bad_names_are_refused(dsn: str, words: tuple[str, ...]) -> None:
    for command in ("rebuild", "verify"):
        said = tenure("projections", command, *words, dsn=dsn)
        assert (said.status, said.out) == (1, "")
        assert said.err.startswith("error: ")


def test_an_audit_snapshot_goes_to_a_file_with_its_digest(dsn: str, tmp_path: Path) -> None:
    head = tenure("log", "head", "--json", dsn=dsn).answer
    out = tmp_path / "snapshot.json"
    words = ("audit", "snapshot", "--at", str(head["position"]))
    told = tenure(*words, "--out", str(out), "--json", dsn=dsn).answer
    assert told["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert (told["chain"], told["chain_checked"]) == (head["chain"], True)
    printed = tenure(*words, dsn=dsn)
    assert printed.out.encode() == out.read_bytes() + b"\n"
    assert told["sha256"] in printed.err
    by_time = tenure("audit", "snapshot", "--at-time", head["recorded_at"], "--json", dsn=dsn)
    assert by_time.answer["sha256"] == told["sha256"]
    earlier = tenure("audit", "snapshot", "--at-time", "1000", "--json", dsn=dsn).answer
    assert earlier["position"] == 0


def test_an_audit_snapshot_of_an_altered_log_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE log SET topic = 'cell.closed' WHERE position = 2")
    said = tenure("audit", "snapshot", "--at", "5", dsn=dsn)
    assert (said.status, said.out) == (1, "")
    assert "broken at position 2" in said.err
    assert tenure("audit", "snapshot", "--at", "1", dsn=dsn).status == 0


@pytest.mark.parametrize(
    "words",
    [(), ("--at", "99999"), ("--at-time", "yesterday"), ("--at-time", "2025-07-31T22:13:20")],
    ids=str,
)
def test_bad_positions_and_times_are_refused(dsn: str, words: tuple[str, ...]) -> None:
    said = tenure("audit", "snapshot", *words, dsn=dsn)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("error: ")
