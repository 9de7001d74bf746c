"""Folding anew what each stored snapshot claims, one stream at a time."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import psycopg
from pydantic import ValidationError

from adapters.entry import Entry
from adapters.mapper import EventMapper
from adapters.postgres import statements
from adapters.postgres.store import connect
from adapters.reading import EventReader
from adapters.snapshots import FOLD_FINGERPRINT, read_assignment
from domain.relay.assignment import Assignment, AssignmentEvent
from domain.relay.decide import evolve_assignment

PAGE_ROWS = 1_000

Verdict: TypeAlias = Literal["equal", "different", "of_other_code"]

_SNAPSHOTS = """
SELECT stream, version, fingerprint, state FROM snapshots
WHERE stream > %s ORDER BY stream LIMIT %s
"""
_ENTRIES = f"""
SELECT {statements.ENTRY_COLUMNS} FROM log
WHERE stream = %s AND version > %s AND version <= %s ORDER BY version LIMIT %s
"""


class SnapshotPlace(NamedTuple):
    """The stream of a snapshot, and the version that it was taken at."""

    stream: str
    version: int


def checked_snapshots(dsn: str) -> Iterator[tuple[SnapshotPlace, Verdict]]:
    """Every snapshot, by stream, as of one moment. Raises `UnreadableEvent`.

    One of other code cannot be judged, and is never used.
    """
    reader = EventReader(EventMapper())
    with connect(dsn) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        after = ""
        while page := connection.execute(_SNAPSHOTS, [after, PAGE_ROWS]).fetchall():
            for stream, version, fingerprint, state in page:
                verdict: Verdict = "of_other_code"
                if fingerprint == FOLD_FINGERPRINT:
                    folded = _folded(connection, reader, stream, version)
                    verdict = "equal" if folded and folded == _claimed(state) else "different"
                yield SnapshotPlace(stream, version), verdict
            after = page[-1][0]


def _folded(
    connection: psycopg.Connection[Any], reader: EventReader, stream: str, until: int
) -> Assignment | None:
    """The assignment at this version of its stream; None if the stream does not go so far."""
    held: Assignment | None = None
    version = 0
    while page := connection.execute(_ENTRIES, [stream, version, until, PAGE_ROWS]).fetchall():
        for entry in map(Entry._make, page):
            event = reader.read_entry(entry)
            if not isinstance(event, AssignmentEvent):
                return None
            held, version = evolve_assignment(held, event), entry.version
    return held if version == until else None


def _claimed(state: bytes) -> Assignment | None:
    try:
        return read_assignment(state)
    except ValidationError:
        return None
