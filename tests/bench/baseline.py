"""The baseline: a bare group-commit loop, the least that any log writer does.

It takes the writer's lock, reads what others added, picks a cell, and commits chained events with
three tables beside them, one turn after the other. It has no rules, looks up no streams and no
keys, checks nothing and survives nothing.
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import psycopg
from pydantic import BaseModel, ConfigDict

from adapters.postgres import statements
from domain.ids import HostId
from domain.limits import ACTIVITY_LEASE_MS
from tests.bench.load import CAPACITY_UNITS, CELLS, SECONDS, Rate, drive, host

COMMANDS_PER_TURN_MAX = 64
CONNECTION_OPTIONS = "-c search_path=bare"


class Placed(BaseModel):
    """What the loop stores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: int
    command_id: str
    actor: str
    user_id: str
    relay_host_id: str
    cell_id: str
    epoch: int
    reason: str
    units: int
    reserved_units: int
    capacity_units: int
    expires_at: int


class Asked(NamedTuple):
    """A host that waits for a place, and who is to be told."""

    host: HostId
    pinned: bool
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[str]"


class Written(NamedTuple):
    """An event as it goes into the tables."""

    position: int
    stream: str
    version: int
    state: bytes
    chain: bytes
    event: Placed


class BareLoop:
    """The loop on a schema of its own. Start it by making it, drive it, stop it."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True, options=CONNECTION_OPTIONS)
        self._reserved = {f"cell-{number:02}": 0 for number in range(CELLS)}
        self._versions: dict[str, int] = {}
        self._position, self._chain = 0, bytes(32)
        self._asked: SimpleQueue[Asked | None] = SimpleQueue()
        self._connection.execute(TABLES)
        cells = [list(self._reserved), [CAPACITY_UNITS] * CELLS]
        self._connection.execute(ADD_CELLS, cells)
        self._thread = threading.Thread(target=self._work, name="bare-loop", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._asked.put(None)
        self._thread.join()
        self._connection.close()

    def measure(self, submitters: int, numbers: Iterator[int], seconds: float = SECONDS) -> Rate:
        """Place new hosts, every second one on the same cell."""

        async def once(_submitter: int, _number: int) -> None:
            number, loop = next(numbers), asyncio.get_running_loop()
            future: asyncio.Future[str] = loop.create_future()
            self._asked.put(Asked(host(number), bool(number % 2), loop, future))
            await future

        return drive(submitters, seconds, once)

    def _work(self) -> None:
        while (first := self._asked.get()) is not None:
            turn = [first]
            while len(turn) < COMMANDS_PER_TURN_MAX:
                try:
                    another = self._asked.get_nowait()
                except Empty:
                    break
                if another is None:
                    self._asked.put(None)
                    break
                turn.append(another)
            written = self._run(turn)
            for asked, it in zip(turn, written, strict=True):
                asked.loop.call_soon_threadsafe(asked.future.set_result, it.event.cell_id)

    def _run(self, turn: list[Asked]) -> list[Written]:
        connection = self._connection
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute(statements.LOCK, prepare=True)
            missed = connection.execute(AFTER, [self._position], prepare=True).fetchall()
            assert not missed
            now = int(time.time() * 1_000)
            written = [self._write(it, now) for it in turn]
            for statement, parameters in self._rows(written):
                connection.execute(statement, parameters, prepare=True)
            connection.execute("NOTIFY bare_log")
            connection.execute("COMMIT")
        return written

    def _write(self, asked: Asked, now: int) -> Written:
        reserved = self._reserved
        if asked.pinned:
            cell_id = next(iter(reserved))
        else:
            cell_id = min(reserved, key=lambda it: (reserved[it] / CAPACITY_UNITS, it))
        stream = "assignment:{}/{}".format(*asked.host)
        version = self._versions[stream] = self._versions.get(stream, 0) + 1
        self._position += 1
        event = Placed(
            at=now,
            command_id=f"{now}-{self._position}",
            actor=f"client:{asked.host.relay_host_id}",
            user_id=asked.host.user_id,
            relay_host_id=asked.host.relay_host_id,
            cell_id=cell_id,
            epoch=version,
            reason="new",
            units=1,
            reserved_units=reserved[cell_id],
            capacity_units=CAPACITY_UNITS,
            expires_at=now + ACTIVITY_LEASE_MS,
        )
        reserved[cell_id] += 1
        state = event.model_dump_json().encode()
        self._chain = hashlib.sha256(self._chain + stream.encode() + state).digest()
        return Written(self._position, stream, version, state, self._chain, event)

    def _rows(self, written: list[Written]) -> Iterator[tuple[str, list[list[Any]]]]:
        positions, streams, versions, states, chains, events = map(list, zip(*written, strict=True))
        yield APPEND, [positions, streams, versions, states, chains]
        fields = ("user_id", "relay_host_id", "cell_id", "epoch", "expires_at")
        columns = [[getattr(event, field) for event in events] for field in fields]
        yield ASSIGN, columns
        yield LEASE, columns
        touched = sorted(set(columns[2]))
        yield RESERVE, [touched, [self._reserved[it] for it in touched]]


TABLES = """
CREATE SCHEMA bare;
CREATE TABLE bare.log (
    position bigint NOT NULL UNIQUE, stream text NOT NULL, version bigint NOT NULL,
    topic text NOT NULL, state bytea NOT NULL, recorded_at timestamptz NOT NULL DEFAULT now(),
    chain bytea NOT NULL, PRIMARY KEY (stream, version)
);
CREATE TABLE bare.cells (
    cell_id text PRIMARY KEY, capacity_units bigint NOT NULL, reserved_units bigint NOT NULL,
    CHECK (reserved_units BETWEEN 0 AND capacity_units)
) WITH (fillfactor = 50);
CREATE TABLE bare.assignments (
    user_id text, relay_host_id text, cell_id text NOT NULL, epoch bigint NOT NULL,
    controls bigint NOT NULL, expires_at bigint NOT NULL, PRIMARY KEY (user_id, relay_host_id)
) WITH (fillfactor = 70);
CREATE TABLE bare.leases (
    user_id text, relay_host_id text, activity_id text, kind text NOT NULL, cell_id text NOT NULL,
    units bigint NOT NULL, expires_at bigint NOT NULL,
    PRIMARY KEY (user_id, relay_host_id, activity_id)
) WITH (fillfactor = 70);
"""
ADD_CELLS = "INSERT INTO cells SELECT *, 0 FROM unnest(%s::text[], %s::bigint[])"
AFTER = "SELECT position, topic, state FROM log WHERE position > %s ORDER BY position"
APPEND = """
INSERT INTO log (position, stream, version, topic, state, chain)
SELECT position, stream, version, 'assignment.placed', state, chain
FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bytea[], %s::bytea[])
    AS u(position, stream, version, state, chain)
"""
_GRANTS = """
FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[])
    AS u(user_id, relay_host_id, cell_id, epoch, expires_at)
"""
ASSIGN = f"""
INSERT INTO assignments SELECT user_id, relay_host_id, cell_id, epoch, 1, expires_at {_GRANTS}
ON CONFLICT (user_id, relay_host_id) DO UPDATE
SET cell_id = excluded.cell_id, epoch = excluded.epoch, expires_at = excluded.expires_at
"""
LEASE = f"""
INSERT INTO leases
SELECT user_id, relay_host_id, 'control-pending:' || epoch, 'control', cell_id, 1, expires_at
{_GRANTS}
ON CONFLICT (user_id, relay_host_id, activity_id) DO UPDATE SET expires_at = excluded.expires_at
"""
RESERVE = """
UPDATE cells SET reserved_units = u.reserved_units
FROM unnest(%s::text[], %s::bigint[]) AS u(cell_id, reserved_units)
WHERE cells.cell_id = u.cell_id
"""
