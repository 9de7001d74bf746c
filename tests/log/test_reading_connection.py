"""Reads share one connection, and go on when it was lost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from adapters.postgres.reading_connection import ReadingConnection

WHO = "SELECT pg_backend_pid()"


@pytest.fixture
def reading(database: str) -> Iterator[ReadingConnection]:
    with closing(ReadingConnection(database)) as it:
        yield it


def test_threads_share_one_connection(reading: ReadingConnection) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(reading.fetch, WHO) for _ in range(64)]
        assert len({it.result()[0] for it in asked}) == 1


def test_a_lost_connection_is_opened_again(reading: ReadingConnection, database: str) -> None:
    before = reading.fetch(WHO)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", before[0])
    after = reading.fetch(WHO)
    assert after != before
    assert reading.fetch(WHO) == after


def test_a_refused_question_is_not_asked_again(reading: ReadingConnection) -> None:
    before = reading.fetch(WHO)
    reading.fetch("SELECT set_config('statement_timeout', '1', false)")
    with pytest.raises(psycopg.errors.QueryCanceled):
        reading.fetch("SELECT pg_sleep(60)")
    assert reading.fetch(WHO) == before


def test_what_was_closed_is_opened_by_the_next_read(reading: ReadingConnection) -> None:
    before = reading.fetch(WHO)
    reading.close()
    assert reading.fetch(WHO) != before
