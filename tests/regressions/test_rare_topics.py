"""A page takes no longer the rarer its topic is, or the longer ago its stream ended.

A search once read on to the end of the log until its page was full.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import adapters.postgres.log_pages as log_pages
from adapters.postgres.log_pages import LOOKED_AT_ENTRIES_MAX
from app.http.events import EventStream
from tests.http.running import Running, running
from tests.http.test_stream import events

ENTRIES = 3 * LOOKED_AT_ENTRIES_MAX
HOT_UNTIL = 2 * LOOKED_AT_ENTRIES_MAX
LIMIT = 100
OTHER_ROWS_MAX = 200
"""Halving, the head, what follows: rows beside those looked at."""

FILL = f"""
INSERT INTO log
SELECT position, stream, row_number() OVER (PARTITION BY stream ORDER BY position),
       CASE WHEN position IN (1, {ENTRIES - 1}) THEN 'rare' ELSE 'usual' END,
       convert_to('{{}}', 'UTF8'), now(), sha256(position::text::bytea)
FROM (SELECT position, CASE WHEN position <= {HOT_UNTIL} AND position % 4 > 0 THEN 'hot'
                            ELSE 'cold:' || position % 1000 END AS stream
      FROM generate_series(1, {ENTRIES}) AS position) AS entries
"""


@pytest.fixture
def filled(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(FILL.encode())
        connection.execute("ANALYZE log")
    return database


def rows_looked_at(plan: dict[str, Any]) -> float:
    """The rows of the log that a plan touched, kept or not."""
    seen = sum(rows_looked_at(it) for it in plan.get("Plans", ()))
    if plan.get("Relation Name") == "log":
        seen += (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return seen


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("after", "stream", "topic"),
    [
        (0, None, None),
        (1, None, "rare"),
        (LOOKED_AT_ENTRIES_MAX, None, "no such topic"),
        (0, "hot", None),
        (HOT_UNTIL // 2, "hot", None),
        (HOT_UNTIL, "hot", None),
        (1, "hot", "rare"),
        (ENTRIES - 500, "cold:4", None),
        (0, "no such stream", None),
    ],
)
def test_a_page_looks_at_a_bounded_number_of_rows(
    filled: str, mode: str, after: int, stream: str | None, topic: str | None
) -> None:
    query, wanted = log_pages.look(after, LIMIT, stream, topic)
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {query}".encode()
        row = connection.execute(explain, wanted, prepare=True).fetchone()
    assert row is not None
    bound = LIMIT if topic is None else LOOKED_AT_ENTRIES_MAX
    assert rows_looked_at(row[0][0]["Plan"]) <= bound + OTHER_ROWS_MAX


def test_a_page_that_found_nothing_moves_on_and_never_changes(filled: str, tmp_path: Path) -> None:
    with running(filled, tmp_path) as edge:
        path, found, lasting = "/v1/log?topic=rare&limit=2&after=1", [], []
        for _ in range(3):
            page = edge.operator.get(path)
            found.append([it["position"] for it in page.json()["entries"]])
            lasting.append("immutable" in page.headers["Cache-Control"])
            if lasting[-1]:
                etag = page.headers["ETag"]
                kept = edge.operator.get(path, headers={"If-None-Match": etag})
                assert (kept.status_code, kept.headers["ETag"]) == (304, etag)
            path = page.links["next"]["url"]
        assert found == [[], [], [ENTRIES - 1]]
        assert lasting == [True, True, False]
        last = edge.operator.get(path)
        assert (last.json()["entries"], last.links["next"]["url"]) == ([], path)


def test_a_stream_looks_at_every_row_once(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventStream, "ping_seconds", 0.05)
    begun: list[int] = []
    with running(filled, tmp_path) as edge:
        look = edge.service.reads.page

        async def page(after: int, *wanted: Any) -> log_pages.Page:
            begun.append(after)
            return await look(after, *wanted)

        monkeypatch.setattr(edge.service.reads, "page", page)
        with edge.operator.stream("GET", "/v1/log/stream?topic=rare&after=1") as answer:
            told = events(answer.iter_lines())
            assert next(told) == {"comment": "following"}
            assert next(it for it in told if "id" in it)["id"] == str(ENTRIES - 1)
            assert next(told) == {"comment": "ping"}
    step = LOOKED_AT_ENTRIES_MAX
    assert begun == [1, 1 + step, 1 + 2 * step]


@pytest.fixture
def few(database: str, tmp_path: Path) -> Iterator[Running]:
    with running(database, tmp_path) as edge:
        for number in range(4):
            edge.live_cell(f"c-{number % 2}", capacity_units=100 + number)
            edge.assign(f"u/{number}")
        yield edge


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_hold_what_the_log_does(
    few: Running, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pages, "LOOKED_AT_ENTRIES_MAX", 3)
    head = few.head()
    log = few.operator.get("/v1/log").json()["entries"]
    assert len(log) == head
    reads = few.service.reads
    for stream in (None, *{it["stream"] for it in log}):
        for topic in (None, *{it["topic"] for it in log}):
            wanted = [
                it["position"]
                for it in log
                if stream in (None, it["stream"]) and topic in (None, it["topic"])
            ]
            for start in range(head + 2):
                after, found = start, []
                while True:
                    page = few.run(reads.page(after, limit, stream, topic))
                    found += [it.position for it in page.entries]
                    if page.looked_to == after:
                        break
                    after = page.looked_to
                assert found == [it for it in wanted if it > start]
                assert after == max(head, start)
