"""Numbered files are applied once, in order, and never silently differ from the database."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from adapters.postgres import migrate
from adapters.postgres.migrate import Connection, MigrationMismatch


@pytest.fixture
def connection(empty_database: str) -> Iterator[Connection]:
    with psycopg.connect(empty_database) as opened:
        yield opened


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "001_first.sql").write_text("CREATE TABLE first (n int); CREATE TABLE other ();")
    (tmp_path / "002_second.sql").write_text("INSERT INTO first VALUES (2);")
    return tmp_path


def numbers(migrations: list[migrate.Migration]) -> list[int]:
    return [migration.number for migration in migrations]


def tables(connection: Connection) -> list[str]:
    with connection.transaction():
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
    return [row[0] for row in rows]


def test_a_plan_changes_nothing(connection: Connection, files: Path) -> None:
    assert numbers(migrate.plan(connection, files)) == [1, 2]
    assert tables(connection) == []


def test_files_are_applied_in_order_and_once(connection: Connection, files: Path) -> None:
    assert numbers(migrate.apply(connection, files)) == [1, 2]
    assert tables(connection) == ["first", "other", "schema_migrations"]
    assert migrate.plan(connection, files) == []
    assert migrate.apply(connection, files) == []
    assert connection.execute("SELECT n FROM first").fetchall() == [(2,)]


def test_a_later_file_is_applied_to_an_older_database(connection: Connection, files: Path) -> None:
    migrate.apply(connection, files)
    (files / "003_third.sql").write_text("INSERT INTO first VALUES (3) -- 100% done")
    assert numbers(migrate.plan(connection, files)) == [3]
    assert numbers(migrate.apply(connection, files)) == [3]


def test_a_failing_file_leaves_nothing_of_itself(connection: Connection, files: Path) -> None:
    (files / "003_third.sql").write_text("CREATE TABLE third (); SELECT 1 / 0;")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate.apply(connection, files)
    assert tables(connection) == ["first", "other", "schema_migrations"]
    assert numbers(migrate.plan(connection, files)) == [3]


def test_an_altered_file_is_named(connection: Connection, files: Path) -> None:
    migrate.apply(connection, files)
    (files / "001_first.sql").write_text("CREATE TABLE first (n bigint);")
    for act in (migrate.plan, migrate.apply):
        with pytest.raises(MigrationMismatch, match=r"001_first\.sql was altered"):
            act(connection, files)


def test_a_database_of_a_newer_version_is_refused(connection: Connection, files: Path) -> None:
    migrate.apply(connection, files)
    (files / "002_second.sql").unlink()
    for act in (migrate.plan, migrate.apply):
        with pytest.raises(MigrationMismatch, match=r"002_second\.sql .* newer version"):
            act(connection, files)


def test_a_renamed_file_is_refused(connection: Connection, files: Path) -> None:
    migrate.apply(connection, files)
    (files / "002_second.sql").rename(files / "002_renamed.sql")
    with pytest.raises(MigrationMismatch, match=r"002_second\.sql .* 002_renamed\.sql"):
        migrate.plan(connection, files)


@pytest.mark.parametrize("name", ["002_twice.sql", "004_gap.sql", "3_short.sql", "draft.sql"])
def test_files_must_be_numbered_without_gaps(files: Path, name: str) -> None:
    (files / name).write_text("SELECT 1")
    with pytest.raises(MigrationMismatch, match=r"\.sql"):
        migrate.load(files)


def test_processes_that_migrate_at_once_apply_each_file_once(
    empty_database: str, files: Path
) -> None:
    def apply_all() -> list[int]:
        with psycopg.connect(empty_database) as connection:
            return numbers(migrate.apply(connection, files))

    with ThreadPoolExecutor(4) as pool:
        applied = [pool.submit(apply_all) for _ in range(4)]
        assert sorted(number for each in applied for number in each.result()) == [1, 2]


def test_the_test_database_has_all_migrations(database: str) -> None:
    with psycopg.connect(database) as connection:
        assert migrate.plan(connection) == []
