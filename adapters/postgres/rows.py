"""Row changes as SQL: one statement a table and kind of change, its columns as arrays.

Arrays travel as literals written by a JSON serializer, far faster than element-wise adaptation:
the two notations agree except for brackets and escapes, and escapes take the slow path.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import orjson

from projections.table import Rows, Table


def array(values: Sequence[Any]) -> str:
    """A PostgreSQL array literal of numbers, booleans, texts or nulls."""
    text = orjson.dumps(values).decode()
    if "\\" in text:
        return "{" + ",".join(_element(value) for value in values) + "}"
    return "{" + text[1:-1] + "}"


def json_array(values: Sequence[str]) -> str:
    """An array literal of JSON texts: their only escapes are quotes and backslashes."""
    return "{" + orjson.dumps(values).decode()[1:-1] + "}"


def _element(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return orjson.dumps(value).decode()


def statements(rows: Rows) -> Iterator[tuple[str, list[str]]]:
    """The statements, with their parameters, that make the changes."""
    for table, changes in rows.changes.items():
        puts: list[list[Any]] = []
        drops: list[tuple[Any, ...]] = []
        sets: dict[tuple[str, ...], list[list[Any]]] = {}
        for key, change in changes.items():
            if change is None:
                drops.append(key)
            elif isinstance(change, list):
                puts.append(change)
            else:
                sets.setdefault(tuple(change), []).append([*key, *change.values()])
        if drops:
            yield _drop(table), _columns(drops)
        if puts:
            yield put_statement(table), _columns(puts)
        for names, updates in sets.items():
            yield _set(table, names), _columns(updates)


def _columns(rows: Sequence[Sequence[Any]]) -> list[str]:
    return [array(column) for column in zip(*rows, strict=True)]


def _unnest(table: Table, names: Sequence[str]) -> str:
    arrays = ", ".join(f"%s::{table.columns[name]}[]" for name in names)
    return f"unnest({arrays}) AS u({', '.join(names)})"


def _match(table: Table) -> str:
    return " AND ".join(f"t.{name} = u.{name}" for name in table.key)


@cache
def put_statement(table: Table) -> str:
    """Insert whole rows, or overwrite those that exist."""
    rest = [name for name in table.columns if name not in table.key]
    assigned = ", ".join(f"{name} = excluded.{name}" for name in rest)
    return (
        f"INSERT INTO {table.name} SELECT * FROM {_unnest(table, list(table.columns))} "
        f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {assigned}"
    )


@cache
def _set(table: Table, names: tuple[str, ...]) -> str:
    assigned = ", ".join(f"{name} = u.{name}" for name in names)
    source = _unnest(table, [*table.key, *names])
    return f"UPDATE {table.name} t SET {assigned} FROM {source} WHERE {_match(table)}"


@cache
def _drop(table: Table) -> str:
    return f"DELETE FROM {table.name} t USING {_unnest(table, table.key)} WHERE {_match(table)}"
