"""The schema, as numbered `NNN_name.sql` files that are applied once, in order."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

MIGRATIONS = Path(__file__).parent / "migrations"
APPLY_LOCK = 0x74656E757265  # "tenure", so that no other program's advisory lock is meant
FILE_NAME = re.compile(r"(\d{3})_([a-z0-9_]+)\.sql")

Connection = psycopg.Connection[TupleRow]


class MigrationMismatch(Exception):
    """The database has not been migrated by these files, or not by all of them in order."""


@dataclass(frozen=True)
class Migration:
    """One file; `checksum` is the SHA-256 of its bytes in hexadecimal."""

    number: int
    name: str
    checksum: str
    statements: str


def load(directory: Path = MIGRATIONS) -> list[Migration]:
    """All migrations, by number: 1, 2, 3, … without a gap."""
    found = [_read(path) for path in sorted(directory.glob("*.sql"))]
    for expected, migration in enumerate(found, start=1):
        if migration.number != expected:
            raise MigrationMismatch(
                f"{_file_name(migration.number, migration.name)} stands where "
                f"number {expected:03} is expected"
            )
    return found


def plan(connection: Connection, directory: Path = MIGRATIONS) -> list[Migration]:
    """The migrations still to apply; changes nothing. Raises `MigrationMismatch`."""
    with connection.transaction():
        return _pending(connection, load(directory))


def apply(connection: Connection, directory: Path = MIGRATIONS) -> list[Migration]:
    """Apply what is pending, each file in its own transaction; returns what was applied.

    Several processes may do this at once: one applies a file, the others find it applied.
    """
    assert connection.info.transaction_status == TransactionStatus.IDLE
    migrations = load(directory)
    applied: list[Migration] = []
    while True:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [APPLY_LOCK])
            pending = _pending(connection, migrations)
            if not pending:
                return applied
            _apply_one(connection, pending[0])
        applied.append(pending[0])


def _read(path: Path) -> Migration:
    match = FILE_NAME.fullmatch(path.name)
    if match is None:
        raise MigrationMismatch(f"{path.name} is not named NNN_name.sql")
    content = path.read_bytes()
    return Migration(
        number=int(match[1]),
        name=match[2],
        checksum=hashlib.sha256(content).hexdigest(),
        statements=content.decode(),
    )


def _file_name(number: int, name: str) -> str:
    return f"{number:03}_{name}.sql"


def _pending(connection: Connection, migrations: list[Migration]) -> list[Migration]:
    recorded = _recorded(connection)
    for index, (number, name, checksum) in enumerate(recorded):
        file_name = _file_name(number, name)
        if index >= len(migrations):
            raise MigrationMismatch(f"{file_name} was applied by a newer version")
        known = migrations[index]
        if (known.number, known.name) != (number, name):
            raise MigrationMismatch(
                f"{file_name} was applied where {_file_name(known.number, known.name)} is expected"
            )
        if known.checksum != checksum:
            raise MigrationMismatch(f"{file_name} was altered after it was applied")
    return migrations[len(recorded) :]


def _recorded(connection: Connection) -> list[tuple[int, str, str]]:
    row = connection.execute("SELECT to_regclass('schema_migrations') IS NOT NULL").fetchone()
    assert row is not None
    if not row[0]:
        return []
    rows = connection.execute(
        "SELECT number, name, checksum FROM schema_migrations ORDER BY number"
    ).fetchall()
    return [(number, name, checksum) for number, name, checksum in rows]


def _apply_one(connection: Connection, migration: Migration) -> None:
    connection.execute(
        """
        CREATE TABLE IF NOT EXISTS schema_migrations (
            number integer PRIMARY KEY,
            name text COLLATE "C" NOT NULL,
            checksum text COLLATE "C" NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        )
        """
    )
    connection.execute(migration.statements.encode())
    connection.execute(
        "INSERT INTO schema_migrations (number, name, checksum) VALUES (%s, %s, %s)",
        [migration.number, migration.name, migration.checksum],
    )
