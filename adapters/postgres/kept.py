"""The table `projections`: which fold wrote the live, rebuilt and previous tables of each."""

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from projections.rebuild import Kept, Role, code_of
from projections.table import Projection

FIRST_VERSION = 1
"""Of tables without a row: those of the migrations, written event by event since the first."""

Connection = psycopg.Connection[Any]

_READ = "SELECT name, role, version, code, position FROM projections ORDER BY name, role"
_NOTE = """
INSERT INTO projections (name, role, version, code, position)
SELECT u.name, %s, u.version, u.code, %s
FROM unnest(%s::text[], %s::bigint[], %s::text[]) AS u(name, version, code)
ON CONFLICT (name, role) DO UPDATE SET
    version = excluded.version, code = excluded.code, position = excluded.position
"""
_FORGET = "DELETE FROM projections WHERE name = ANY(%s) AND role = %s"
_REPLACED = """
INSERT INTO projections (name, role, version, code, position)
SELECT u.name, 'previous', coalesce(l.version, %s), coalesce(l.code, ''), %s
FROM unnest(%s::text[]) AS u(name)
LEFT JOIN projections l ON l.name = u.name AND l.role = 'live'
ON CONFLICT (name, role) DO UPDATE SET
    version = excluded.version, code = excluded.code, position = excluded.position
"""


def read(connection: Connection) -> list[Kept]:
    """Everything that is known."""
    return [Kept(*row) for row in connection.execute(_READ).fetchall()]


def live_version(known: Iterable[Kept], name: str) -> int:
    """The version of the fold that wrote a projection's live tables."""
    found = (it.version for it in known if it.name == name and it.role == "live")
    return next(found, FIRST_VERSION)


def note(
    connection: Connection, projections: Sequence[Projection], role: Role, position: int
) -> None:
    """Write down that today's fold made these tables up to a position."""
    names = [it.name for it in projections]
    versions = [it.version for it in projections]
    codes = [code_of(it) for it in projections]
    connection.execute(_NOTE, [role, position, names, versions, codes])


def forget(connection: Connection, names: Sequence[str], role: Role) -> None:
    """These tables are gone."""
    connection.execute(_FORGET, [list(names), role])


def switched(connection: Connection, projections: Sequence[Projection], position: int) -> None:
    """The rebuilt tables are the live ones now, those before are the previous ones."""
    names = [it.name for it in projections]
    connection.execute(_REPLACED, [FIRST_VERSION, position, names])
    note(connection, projections, "live", position)
    forget(connection, names, "rebuilt")
