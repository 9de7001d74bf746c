"""From times to positions of the log."""

from adapters.postgres.store import connect

_AT = """
SELECT position FROM log
WHERE recorded_at <= timestamptz 'epoch' + %s::bigint * interval '1 microsecond'
ORDER BY position DESC LIMIT 1
"""


def position_at(dsn: str, at_us: int) -> int:
    """The last position recorded at or before a time (epoch microseconds); 0 if there is none."""
    with connect(dsn) as connection:
        row = connection.execute(_AT, [at_us]).fetchone()
    return 0 if row is None else int(row[0])
