"""What a placement leaves behind: bytes of its event, bytes of write-ahead log."""

from collections.abc import Iterable

import psycopg

from tests.bench.load import Bench

EVENT_BYTES = "SELECT avg(octet_length(state))::float8 FROM log WHERE topic = 'host.placed'"
WAL_BYTES = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8"
FULLEST_CELL = """
SELECT max((shift ->> 2)::bigint)::float8
FROM log, jsonb_array_elements(convert_from(state, 'UTF8')::jsonb -> 'event' -> 'shifts') AS shift
WHERE topic = 'host.placed'
"""


def event_bytes(dsn: str) -> float:
    """Of a placement's event, on average."""
    return _ask(dsn, EVENT_BYTES)


def wal_bytes(bench: Bench, dsn: str, numbers: Iterable[int]) -> float:
    """Of a placement, on average over these new hosts. Includes full pages after checkpoints."""
    before = _ask(dsn, WAL_BYTES)
    placed = bench.place_hosts(numbers)
    return (_ask(dsn, WAL_BYTES) - before) / len(placed)


def fullest_cell(dsn: str) -> int:
    """The most units that any placement ever left on a cell."""
    return int(_ask(dsn, FULLEST_CELL))


def _ask(dsn: str, query: str) -> float:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return float(row[0])
