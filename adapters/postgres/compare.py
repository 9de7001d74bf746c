"""Comparing live tables with tables of the same shape, row by row, inside PostgreSQL."""

from collections.abc import Iterable
from typing import Any

import psycopg

from adapters.postgres.rows import array
from projections.rebuild import named
from projections.table import Key, Table
from projections.verify import Difference

Connection = psycopg.Connection[Any]


def differences(connection: Connection, tables: Iterable[Table], prefix: str) -> list[Difference]:
    """The tables whose rows are not exactly those of the prefixed table."""
    found = []
    for table in tables:
        query = _select(table) + (
            f"FROM public.{table.name} l FULL JOIN {named(table, prefix).name} f "
            f"USING ({_key(table)}) {_where(table)}"
        )
        found.extend(_difference(table, connection.execute(query.encode()).fetchone()))
    return found


def differences_at(
    connection: Connection, touched: dict[Table, set[Key]], prefix: str
) -> list[Difference]:
    """The same, looking only at these keys."""
    found = []
    for table, keys in touched.items():
        columns = [array(column) for column in zip(*keys, strict=True)]
        arrays = ", ".join(f"%s::{table.columns[name]}[]" for name in table.key)
        query = _select(table) + (
            f"FROM unnest({arrays}) AS u({_key(table)}) "
            f"LEFT JOIN public.{table.name} l USING ({_key(table)}) "
            f"LEFT JOIN {named(table, prefix).name} f USING ({_key(table)}) {_where(table)}"
        )
        if keys:
            found.extend(_difference(table, connection.execute(query.encode(), columns).fetchone()))
    return found


def count(connection: Connection, tables: Iterable[Table], prefix: str = "") -> int:
    """How many rows the tables of the prefix have together."""
    total = 0
    for table in tables:
        query = f"SELECT count(*) FROM {named(table, prefix).name}"
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        total += row[0]
    return total


def _key(table: Table) -> str:
    return ", ".join(table.key)


def _select(table: Table) -> str:
    return f"SELECT count(*) OVER (), {_key(table)}, to_jsonb(l), to_jsonb(f) "


def _where(table: Table) -> str:
    live, folded = (", ".join(f"{side}.{name}" for name in table.columns) for side in "lf")
    return f"WHERE ROW({live}) IS DISTINCT FROM ROW({folded}) ORDER BY {_key(table)} LIMIT 1"


def _difference(table: Table, row: Any) -> list[Difference]:
    if row is None:
        return []
    total, *key = row[:-2]
    return [Difference(table.name, total, tuple(key), row[-2], row[-1])]
