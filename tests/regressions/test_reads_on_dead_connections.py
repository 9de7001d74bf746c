"""No read fails while the database answers, however many connections it ended.

After all connections were ended, one read failed for each of them that the pool still held.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg

from adapters.postgres.reads import Reads
from adapters.postgres.tokens import Token
from tests.http.running import NOW, running

CONNECTIONS_MAX = 4
ROUNDS = 5


def end_all_connections(dsn: str) -> int:
    """End everybody's connections to this database but the one that does it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return len(ended)


def with_reads(dsn: str, act: Callable[[Reads], Awaitable[None]]) -> None:
    async def run() -> None:
        reads = Reads(dsn, CONNECTIONS_MAX)
        await reads.open()
        try:
            await act(reads)
        finally:
            await reads.close()

    asyncio.run(run())


def test_reads_go_on_after_all_connections_ended(database: str) -> None:
    async def act(reads: Reads) -> None:
        for _ in range(ROUNDS):
            await asyncio.gather(*(reads.head() for _ in range(4 * CONNECTIONS_MAX)))
            assert await asyncio.to_thread(end_all_connections, database) > 0
            for _ in range(CONNECTIONS_MAX):
                await reads.head()

    with_reads(database, act)


def test_readers_at_the_same_time_go_on_too(database: str) -> None:
    async def act(reads: Reads) -> None:
        for _ in range(ROUNDS):
            await asyncio.gather(*(reads.head() for _ in range(4 * CONNECTIONS_MAX)))
            assert await asyncio.to_thread(end_all_connections, database) > 0

    with_reads(database, act)


def test_a_read_goes_on_that_was_waiting_for_its_answer(database: str) -> None:
    async def act(reads: Reads) -> None:
        with psycopg.connect(database) as holder:
            holder.execute("LOCK TABLE tokens")
            asked = asyncio.create_task(reads.token(b"?"))
            while not holder.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                await asyncio.sleep(0)
            holder.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE NOT granted")
        assert await asked is None

    with_reads(database, act)


def test_what_may_be_applied_twice_answers_the_same_twice(database: str) -> None:
    async def act(reads: Reads) -> None:
        await reads.create_token(Token(b"hash", "id", "auditor", None, NOW))
        await reads.create_token(Token(b"hash", "id", "auditor", None, NOW))
        assert await reads.revoke_token("id", NOW)
        assert await reads.revoke_token("id", NOW)
        assert not await reads.revoke_token("id", NOW + 1)

    with_reads(database, act)


def test_requests_that_read_are_answered(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as edge:
        edge.configure("c-1")
        for _ in range(ROUNDS):
            assert edge.operator.get("/v1/cells").status_code == 200
            assert end_all_connections(database) > 0
            answers = [edge.operator.get("/v1/cells").status_code for _ in range(8)]
            assert set(answers) == {200}
