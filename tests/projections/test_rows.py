"""Changes to rows: how they merge, and that PostgreSQL stores exactly what was meant."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.postgres.rows import array, json_array, statements
from projections.table import Rows, Table

PLACES = Table(
    "places", 2, {"owner": "text", "number": "bigint", "name": "text", "open": "boolean"}
)
THINGS = Table("things", 1, {"id": "text", "told": "jsonb"})

NASTY = (
    "",
    " ",
    "plain",
    'a "quoted" word',
    "back\\slash",
    "\\",
    '\\"',
    "ends with \\",
    '"',
    "NULL",
    "null",
    "true",
    "{a,b}",
    "{}",
    "[1,2]",
    "a,b",
    "tab\tline\nreturn\rfeed\f\b",
    "\x01\x02\x1b\x1f\x7f",
    "\u0080\u009f\u2028\u2029\ufeff",
    "ümlaut ß",
    "日本語",
    "🛰️ 👩‍👩‍👧",
    "\\u0041",
    "\\n",
    "$1 %s %% ':;--",
    " {leading and trailing} ",
    "x" * 10_000,
)


# merging


def test_a_row_put_twice_is_the_later_one() -> None:
    rows = Rows()
    rows.put(PLACES, "ada", 1, "first", True)
    rows.put(PLACES, "ada", 1, "second", False)
    assert rows.changes == {PLACES: {("ada", 1): ["ada", 1, "second", False]}}


def test_columns_set_on_a_row_just_put_become_part_of_it() -> None:
    rows = Rows()
    rows.put(PLACES, "ada", 1, "first", True)
    rows.set(PLACES, ("ada", 1), name="second")
    assert rows.changes == {PLACES: {("ada", 1): ["ada", 1, "second", True]}}


def test_columns_set_one_after_the_other_add_up_and_the_later_value_counts() -> None:
    rows = Rows()
    rows.set(PLACES, ("ada", 1), name="first")
    rows.set(PLACES, ("ada", 1), open=False)
    rows.set(PLACES, ("ada", 1), name="second")
    assert rows.changes == {PLACES: {("ada", 1): {"name": "second", "open": False}}}


def test_a_whole_row_overrides_columns_set_before() -> None:
    rows = Rows()
    rows.set(PLACES, ("ada", 1), name="first")
    rows.put(PLACES, "ada", 1, "second", False)
    assert rows.changes == {PLACES: {("ada", 1): ["ada", 1, "second", False]}}


def test_a_dropped_row_is_gone_whatever_it_was_and_may_come_back() -> None:
    rows = Rows()
    rows.put(PLACES, "ada", 1, "first", True)
    rows.drop(PLACES, "ada", 1)
    rows.set(PLACES, ("ada", 2), name="set")
    rows.drop(PLACES, "ada", 2)
    assert rows.changes == {PLACES: {("ada", 1): None, ("ada", 2): None}}
    rows.put(PLACES, "ada", 1, "back", True)
    assert rows.changes[PLACES]["ada", 1] == ["ada", 1, "back", True]


def test_rows_and_tables_do_not_mix() -> None:
    rows = Rows()
    rows.put(PLACES, "ada", 1, "first", True)
    rows.put(PLACES, "ada", 2, "second", True)
    rows.put(THINGS, "ada", "{}")
    assert set(rows.changes[PLACES]) == {("ada", 1), ("ada", 2)}
    assert rows.changes[THINGS] == {("ada",): ["ada", "{}"]}


def test_a_table_knows_its_key_and_the_place_of_each_column() -> None:
    assert PLACES.key == ("owner", "number")
    assert dict(PLACES.index) == {"owner": 0, "number": 1, "name": 2, "open": 3}


# literals


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as opened:
        yield opened


def read_back(
    connection: psycopg.Connection[Any], literal: str, sql_type: str = "text"
) -> Sequence[Any]:
    """What PostgreSQL makes of an array literal."""
    row = connection.execute(f"SELECT %s::{sql_type}[]", [literal]).fetchone()
    assert row is not None
    return list(row[0])


def test_every_text_arrives_as_it_was(connection: psycopg.Connection[Any]) -> None:
    for text in NASTY:
        assert read_back(connection, array([text])) == [text]
    assert read_back(connection, array(NASTY)) == list(NASTY)
    mixed = [None, *NASTY, None]
    assert read_back(connection, array(mixed)) == mixed


def test_any_text_arrives_as_it_was(connection: psycopg.Connection[Any]) -> None:
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))

    @settings(
        max_examples=100,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(st.none() | texts, max_size=8))
    def arrives(values: list[str | None]) -> None:
        assert read_back(connection, array(values)) == values

    arrives()


def test_numbers_booleans_and_nulls_arrive_as_they_were(
    connection: psycopg.Connection[Any],
) -> None:
    numbers = [0, -1, None, 2**63 - 1, -(2**63)]
    assert read_back(connection, array(numbers), "bigint") == numbers
    assert read_back(connection, array([True, None, False]), "boolean") == [True, None, False]
    assert read_back(connection, array([])) == []


def test_json_texts_arrive_as_they_were(connection: psycopg.Connection[Any]) -> None:
    states = ['{"a":"b"}', '{"a":"\\"\\\\\\n\\u0001"}', '{"ü":["🛰",null,1.5]}', "{}"]
    assert read_back(connection, json_array(states)) == states
    assert read_back(connection, array(states)) == states
    told = read_back(connection, array([*states, None]), "jsonb")
    assert told == [{"a": "b"}, {"a": '"\\\n\x01'}, {"ü": ["🛰", None, 1.5]}, {}, None]


# statements


def write(connection: psycopg.Connection[Any], rows: Rows) -> None:
    for query, parameters in statements(rows):
        connection.execute(query.encode(), parameters)


def stored(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT * FROM places ORDER BY owner, number").fetchall()


@pytest.fixture
def places(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    connection.execute(
        'CREATE TEMPORARY TABLE places (owner text COLLATE "C", number bigint, name text, '
        "open boolean, PRIMARY KEY (owner, number))"
    )
    return connection


def test_rows_are_put_set_and_dropped(places: psycopg.Connection[Any]) -> None:
    rows = Rows()
    for number, text in enumerate(NASTY):
        rows.put(PLACES, "ada", number, text, number % 2 == 0)
    rows.put(PLACES, "bob", 0, None, None)
    write(places, rows)
    expected: dict[tuple[str, int], tuple[Any, ...]] = {
        ("ada", number): ("ada", number, text, number % 2 == 0) for number, text in enumerate(NASTY)
    }
    expected["bob", 0] = ("bob", 0, None, None)
    assert stored(places) == [expected[key] for key in sorted(expected)]

    rows = Rows()
    rows.put(PLACES, "ada", 0, "put over", False)
    rows.put(PLACES, "zoe", 7, "new", True)
    rows.set(PLACES, ("ada", 1), name=None)
    rows.set(PLACES, ("ada", 2), name="{,}\\", open=None)
    rows.set(PLACES, ("ada", 3), open=True, name="other order")
    rows.set(PLACES, ("nobody", 1), name="sets no row that is not there")
    rows.drop(PLACES, "ada", 4)
    rows.drop(PLACES, "nobody", 2)
    write(places, rows)
    expected["ada", 0] = ("ada", 0, "put over", False)
    expected["zoe", 7] = ("zoe", 7, "new", True)
    expected["ada", 1] = ("ada", 1, None, False)
    expected["ada", 2] = ("ada", 2, "{,}\\", None)
    expected["ada", 3] = ("ada", 3, "other order", True)
    del expected["ada", 4]
    assert stored(places) == [expected[key] for key in sorted(expected)]


def test_keys_are_matched_exactly(places: psycopg.Connection[Any]) -> None:
    rows = Rows()
    for text in NASTY:
        rows.put(PLACES, text, 1, text, True)
    write(places, rows)
    rows = Rows()
    for text in NASTY[::2]:
        rows.drop(PLACES, text, 1)
    for text in NASTY[1::2]:
        rows.set(PLACES, (text, 1), name=f"{text}!")
    write(places, rows)
    assert stored(places) == [(text, 1, f"{text}!", True) for text in sorted(NASTY[1::2])]


def test_without_changes_there_is_nothing_to_say() -> None:
    assert list(statements(Rows())) == []
