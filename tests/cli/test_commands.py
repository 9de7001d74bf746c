"""`tenure migrate | cells | token`, and what every command does when it cannot."""

import hashlib
from pathlib import Path

import psycopg
import pytest

from app.tokens import CACHE_SECONDS_MAX, STREAM_OUTLIVES_SECONDS_MAX
from tests.cli.terminal import tenure
from tests.http.running import running

NOWHERE = "postgresql://127.0.0.1:1/nothing"


def test_migrate_shows_then_applies_then_has_nothing_to_do(empty_database: str) -> None:
    planned = tenure("migrate", "--dry-run", "--json", dsn=empty_database).answer["pending"]
    assert "CREATE TABLE log" in planned[0]["statements"]
    assert tenure("cells", dsn=empty_database).err.endswith("run `tenure migrate`\n")
    applied = tenure("migrate", "--json", dsn=empty_database).answer["applied"]
    assert [it["number"] for it in applied] == [it["number"] for it in planned]
    assert tenure("migrate", dsn=empty_database).out == "nothing is pending\n"


def test_an_altered_migration_is_told_without_a_traceback(empty_database: str) -> None:
    tenure("migrate", dsn=empty_database)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE number = 1")
    said = tenure("migrate", dsn=empty_database)
    assert said.status == 1
    assert "was altered after it was applied" in said.err


def test_cells_from_the_database_and_from_a_service_are_the_same(dsn: str, tmp_path: Path) -> None:
    stored = tenure("cells", "--json", dsn=dsn).answer["cells"]
    assert [it["cell_id"] for it in stored] == ["c-0", "c-1", "c-2"]
    assert sum(it["reserved_units"] for it in stored) == 5 * 3
    shown = tenure("cells", dsn=dsn).out
    assert "reserved / capacity" in shown
    assert "c-2" in shown
    token_file = tmp_path / "operator"
    with running(dsn, tmp_path) as edge:
        token_file.write_text(edge.token("operator")[0] + "\n")
        asked = ("cells", "--url", edge.url, "--json", "--token-file")
        answered = tenure(*asked, str(token_file)).answer["cells"]
        token_file.write_text("nobody")
        refused = tenure(*asked, str(token_file))
    assert [(it["cell_id"], it["reserved_units"]) for it in answered] == [
        (it["cell_id"], it["reserved_units"]) for it in stored
    ]
    assert refused.status == 1
    assert "token_not_accepted" in refused.err
    gone = tenure(*asked, str(token_file))
    assert gone.status == 1
    assert "does not answer" in gone.err


def test_a_token_is_shown_once_and_only_its_hash_is_stored(database: str) -> None:
    words = ("token", "create", "--role", "client", "--bound-to", "user-1/desktop-1", "--json")
    made = tenure(*words, dsn=database).answer
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT token_sha256, role, bound_to FROM tokens").fetchall()
    digest = hashlib.sha256(made["token"].encode()).digest()
    assert rows == [(digest, "client", "user-1/desktop-1")]
    listed = tenure("token", "list", "--json", dsn=database)
    assert made["token"] not in listed.out
    assert [it["token_id"] for it in listed.answer["tokens"]] == [made["token_id"]]
    revoked = tenure("token", "revoke", made["token_id"], "--json", dsn=database).answer
    assert revoked == {
        "revoked": made["token_id"],
        "accepted_for_seconds_max": CACHE_SECONDS_MAX,
        "streams_for_seconds_max": STREAM_OUTLIVES_SECONDS_MAX,
    }
    assert tenure("token", "revoke", made["token_id"], dsn=database).status == 1
    assert made["token_id"] in tenure("token", "list", dsn=database).out


@pytest.mark.parametrize(
    "words",
    [
        ("--role", "king"),
        ("--role", "cell"),
        ("--role", "client", "--bound-to", "user-1"),
        ("--role", "auditor", "--bound-to", "c-1"),
    ],
    ids=str,
)
def test_a_token_without_sense_is_refused(database: str, words: tuple[str, ...]) -> None:
    said = tenure("token", "create", *words, dsn=database)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("error: ")


@pytest.mark.parametrize(
    "words",
    [
        ("migrate",),
        ("cells",),
        ("projections", "list"),
        ("projections", "rebuild", "--all"),
        ("audit", "snapshot", "--at", "1"),
        ("log", "head"),
        ("log", "tail"),
        ("log", "verify"),
        ("token", "list"),
    ],
    ids=" ".join,
)
def test_a_server_out_of_reach_is_one_line_on_stderr(words: tuple[str, ...]) -> None:
    said = tenure(*words, "--json", dsn=NOWHERE)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("error: PostgreSQL is not reachable")
    assert said.err.count("\n") == 1
