"""Tables beside the live ones, made like them and switched in their place.

Indexes carry the names that the migrations gave them from one table to the next, so that later
migrations find them.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from projections.rebuild import PREVIOUS_PREFIX, REBUILT_PREFIX, named
from projections.table import Table

Connection = psycopg.Connection[Any]

_INDEXES = """
SELECT c.relname, regexp_replace(pg_get_indexdef(i.indexrelid), '^.*? USING ', '')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%s)
"""
_STORAGE = "SELECT coalesce(reloptions, '{}') FROM pg_class WHERE oid = to_regclass(%s)"


class Index(NamedTuple):
    """An index by name, and what it is apart from its name and table."""

    name: str
    definition: str


def create(connection: Connection, tables: Iterable[Table], prefix: str, kind: str = "") -> None:
    """Make an empty table like each live one: columns, checks, indexes, storage settings."""
    statement = sql.SQL("CREATE {} TABLE {} (LIKE {} INCLUDING ALL) {}")
    for table in tables:
        target, source = named(table, prefix).name, table.name
        row = connection.execute(_STORAGE, [f"public.{source}"]).fetchone()
        assert row is not None, f"{source} does not exist"
        settings = sql.SQL(f"WITH ({', '.join(row[0])})" if row[0] else "")
        names = sql.Identifier(target), sql.Identifier("public", source)
        connection.execute(statement.format(sql.SQL(kind), *names, settings))


def drop(connection: Connection, tables: Iterable[Table], prefix: str) -> None:
    """Remove the tables of the prefix, if they are there."""
    for table in tables:
        name = sql.Identifier(named(table, prefix).name)
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))


def analyze(connection: Connection, tables: Iterable[Table], prefix: str) -> None:
    """Let the planner know what the tables of the prefix hold."""
    for table in tables:
        name = sql.Identifier(named(table, prefix).name)
        connection.execute(sql.SQL("ANALYZE {}").format(name))


def lock(connection: Connection, tables: Iterable[Table]) -> None:
    """Keep everybody away from the live tables until the transaction ends."""
    names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
    connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))


def switch(connection: Connection, tables: Iterable[Table]) -> None:
    """Put the rebuilt tables in place of the live ones, which are kept as the previous ones."""
    for table in tables:
        live, rebuilt = table.name, named(table, REBUILT_PREFIX).name
        previous = named(table, PREVIOUS_PREFIX).name
        indexes = _indexes(connection, live)
        made = {it.definition: it.name for it in _indexes(connection, rebuilt)}
        for index in indexes:
            _rename(connection, "INDEX", index.name, PREVIOUS_PREFIX + index.name)
            _rename(connection, "INDEX", made[index.definition], index.name)
        _rename(connection, "TABLE", live, previous)
        _rename(connection, "TABLE", rebuilt, live)


def _indexes(connection: Connection, table: str) -> list[Index]:
    return [Index(*row) for row in connection.execute(_INDEXES, [f"public.{table}"]).fetchall()]


def _rename(connection: Connection, kind: str, name: str, to: str) -> None:
    statement = sql.SQL("ALTER {} {} RENAME TO {}")
    connection.execute(statement.format(sql.SQL(kind), sql.Identifier(name), sql.Identifier(to)))
