"""`tenure log verify` names a row before the first position, and a snapshot that was edited.

Both were decided on by the next command, and verification, which began at position 1 and looked at
the log alone, said that all was intact.
"""

import psycopg
import pytest

from adapters.application import PostgresSnapshots, TenureLog
from adapters.postgres import migrate
from adapters.postgres.recorder import PostgresRecorder
from domain.ids import HostId
from tests.cli.terminal import tenure
from tests.projections.logs import change, fleet

FORGED = """
INSERT INTO log SELECT {position}, stream, 99, topic, state, recorded_at, chain
FROM log WHERE stream LIKE 'assignment:%' ORDER BY position LIMIT 1
"""
UNCONSTRAINED = "ALTER TABLE log DROP CONSTRAINT log_position_from_one"
HOSTS = [HostId(f"user-{number}", "desktop-1") for number in range(3)]


@pytest.fixture
def dsn(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log of three hosts, each with a snapshot of its stream."""
    monkeypatch.setenv("TENURE_ALLOW_UNSAFE_DURABILITY", "true")
    with fleet(database) as it:
        it.open_cells(2)
        it.place(0, len(HOSTS))
    with TenureLog(PostgresRecorder(database), PostgresSnapshots(database)) as log:
        for host in HOSTS:
            log.snapshot(host)
    return database


@pytest.mark.parametrize("position", [0, -1, -(2**63)])
def test_a_row_before_the_first_position_is_refused(dsn: str, position: int) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        change(dsn, FORGED.format(position=position))


@pytest.mark.parametrize("position", [0, -1, -(2**63)])
def test_one_forged_before_the_constraint_is_named_and_can_be_migrated(
    dsn: str, position: int
) -> None:
    change(dsn, UNCONSTRAINED)
    change(dsn, FORGED.format(position=position))
    with psycopg.connect(dsn, autocommit=True) as connection:
        constraint = migrate.load()[2]
        assert constraint.name == "positions"
        connection.execute(constraint.statements.encode())
    said = tenure("log", "verify", "--json", dsn=dsn)
    assert (said.status, said.answer["first_bad_position"]) == (1, position)
    assert f"position {position} is before the beginning of the log" in said.err
    assert "version 99 of assignment:user-0/desktop-1 was forged" in said.err
    assert tenure("audit", "snapshot", "--at", "3", dsn=dsn).status == 1


@pytest.mark.parametrize(
    "edit",
    [
        """state = convert_to(replace(convert_from(state, 'UTF8'), '"c-', '"d-'), 'UTF8')""",
        "state = 'nonsense'",
        "version = version - 1",
        "version = version + 1",
        "state = (SELECT state FROM snapshots WHERE stream = 'assignment:user-2/desktop-1')",
    ],
)
def test_an_edited_snapshot_is_named(dsn: str, edit: str) -> None:
    intact = tenure("log", "verify", "--json", dsn=dsn).answer
    assert intact["snapshots"] == {"equal": 3, "of_other_code": 0, "different": []}
    assert change(dsn, f"UPDATE snapshots SET {edit} WHERE stream LIKE '%user-1/%'") == 1
    said = tenure("log", "verify", "--json", dsn=dsn)
    (named,) = said.answer["snapshots"]["different"]
    assert (said.status, said.answer["intact"]) == (1, False)
    assert named["stream"] == "assignment:user-1/desktop-1"
    told = f"differ from the log, which is intact: {named['stream']} at version {named['version']}"
    assert told in said.err
    assert tenure("log", "verify", dsn=dsn).out == ""


def test_a_snapshot_of_other_code_is_counted_and_skipped(dsn: str) -> None:
    change(dsn, "UPDATE snapshots SET fingerprint = 'other', state = '' WHERE stream LIKE '%-1/%'")
    said = tenure("log", "verify", dsn=dsn)
    assert said.status == 0
    assert "2 snapshots equal the log\n1 snapshots of other code were skipped" in said.out


def test_snapshots_are_checked_page_by_page(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.postgres.check_snapshots.PAGE_ROWS", 2)
    answer = tenure("log", "verify", "--json", dsn=dsn).answer
    assert answer["snapshots"]["equal"] == 3
