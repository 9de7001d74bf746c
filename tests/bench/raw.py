"""The baseline: single-row inserts of the same size, one commit each."""

import statistics
import threading
import time

import psycopg

from tests.bench.load import RUNS

BODY = b"x" * 330
SECONDS = 3.0


def raw_inserts(dsn: str, threads: int) -> float:
    """Rows a second, median of the runs."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS raw")
        connection.execute("CREATE TABLE raw (id bigserial PRIMARY KEY, body bytea)")
    return statistics.median(_run(dsn, threads) for _ in range(RUNS))


def _run(dsn: str, threads: int) -> float:
    counts: list[int] = []

    def insert() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            cursor, count, end = connection.cursor(), 0, time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                cursor.execute("INSERT INTO raw (body) VALUES (%s)", [BODY], prepare=True)
                count += 1
        counts.append(count)

    workers = [threading.Thread(target=insert) for _ in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - started)
