"""The baseline of the machine: single-row inserts of an event's size, one commit each."""

import threading
import time

import psycopg

from tests.bench.load import SECONDS, Rate

BODY = b"x" * 330
CREATE = "CREATE TABLE IF NOT EXISTS raw (id bigserial PRIMARY KEY, body bytea)"


def raw_inserts(dsn: str, threads: int) -> Rate:
    """Rows a second, each thread with a connection of its own."""
    with psycopg.connect(dsn, autocommit=True, options="-c client_min_messages=warning") as one:
        one.execute(CREATE)
    counts: list[int] = []
    connected = threading.Barrier(threads + 1)

    def insert() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            cursor, count = connection.cursor(), 0
            connected.wait()
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                cursor.execute("INSERT INTO raw (body) VALUES (%s)", [BODY], prepare=True)
                count += 1
        counts.append(count)

    workers = [threading.Thread(target=insert) for _ in range(threads)]
    for worker in workers:
        worker.start()
    connected.wait()
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    return Rate(sum(counts) / (time.perf_counter() - started))
