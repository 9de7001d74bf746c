"""What a database held before a migration is there after it."""

import shutil
from pathlib import Path

import psycopg

from adapters.postgres import migrate


def test_deadlines_move_from_their_hosts_row_to_rows_of_their_own(
    empty_database: str, tmp_path: Path
) -> None:
    for path in sorted(migrate.MIGRATIONS.glob("*.sql"))[:3]:
        shutil.copy(path, tmp_path)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        migrate.apply(connection, tmp_path)
        connection.execute(
            "INSERT INTO assignment_liveness VALUES "
            "('ada', 'desktop', 90, 10, 50,"
            ' \'{"control:c-1:3": [50, 10], "splice:1": [70, 20]}\'),'
            "('bob', 'laptop', 80, 5, NULL, '{}')"
        )
        migrate.apply(connection)
        hosts = connection.execute("SELECT * FROM assignment_liveness ORDER BY 1").fetchall()
        leases = connection.execute("SELECT * FROM lease_deadlines ORDER BY 1, 2, 3").fetchall()
    assert hosts == [("ada", "desktop", 90, 10), ("bob", "laptop", 80, 5)]
    assert leases == [
        ("ada", "desktop", "control:c-1:3", 50, 10),
        ("ada", "desktop", "splice:1", 70, 20),
    ]
