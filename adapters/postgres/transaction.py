"""One turn of the writer on PostgreSQL: everything asked in one round trip, written in another."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import psycopg

from adapters import ports
from adapters.entry import Entry
from adapters.ports import Batch, Fleet, Loaded, Opened, Result, Seen, Snapshot, Wanted
from adapters.postgres import statements
from adapters.postgres.recorder import append
from adapters.postgres.rows import array, json_array
from adapters.postgres.rows import statements as row_statements
from adapters.snapshots import FOLD_FINGERPRINT, SNAPSHOT_TOPIC, read_assignment, write_assignment
from adapters.streams import SELECTOR_STREAM, cell_stream, host_stream
from domain.ids import HostId
from domain.relay import command
from domain.relay.command import Scan
from domain.relay.renewals import Renewal
from domain.relay.runtime import CellRuntime
from domain.relay.turn import Facts, Load
from projections.relay.cells import cell_of
from projections.relay.volatile import liveness_of, runtime_of

_SCANS: dict[type, str] = {
    command.ObservedConnections: statements.OBSERVED_CONNECTIONS,
    command.LapsingConnections: statements.LAPSING_CONNECTIONS,
    command.ExpiredLeases: statements.EXPIRED_LEASES,
    command.ExpiredCounts: statements.EXPIRED_COUNTS,
    command.OldPreferences: statements.OLD_PREFERENCES,
}
Asked: TypeAlias = dict[str, "psycopg.Cursor[Any]"]
ParsedRuntimes: TypeAlias = dict[str, tuple[Any, CellRuntime]]
"""Runtime rows as last parsed, by cell: most turns read the same text again."""


class PostgresTransaction:
    """Holds the writer lock from `open` until it ends."""

    def __init__(self, connection: psycopg.Connection[Any], parsed: ParsedRuntimes) -> None:
        self._connection = connection
        self._parsed = parsed
        self.ended = False

    def open(self, after: int | None, wanted: Wanted) -> Opened:
        connection = self._connection
        with connection.pipeline():
            connection.execute("BEGIN")
            # Others need not wait for the streams; what is added meanwhile is among the entries.
            early = Wanted() if after is None else Wanted(streams=wanted.streams)
            seeing = ask(connection, early)
            connection.execute(statements.LOCK, prepare=True)
            turn = connection.execute(statements.TAKE_TURN, prepare=True)
            entries = None
            if after is not None:
                entries = connection.execute(
                    statements.AFTER, [after, ports.CATCH_UP_ENTRIES_MAX], prepare=True
                )
            runtimes = connection.execute(statements.RUNTIMES, prepare=True)
            late = Wanted([] if early.streams else wanted.streams, wanted.hosts, wanted.keys)
            seeing.update(ask(connection, late))
        row = turn.fetchone()
        assert row is not None
        return Opened(
            turn=row[0],
            entries=[Entry(*row) for row in entries.fetchall()] if entries else [],
            runtimes={row[0]: self._runtime(row) for row in runtimes.fetchall()},
            seen=told(wanted, seeing),
        )

    def see(self, wanted: Wanted) -> Seen:
        with self._connection.pipeline():
            seeing = ask(self._connection, wanted)
        return told(wanted, seeing)

    def fleet(self) -> Fleet:
        connection = self._connection
        with connection.pipeline():
            last = connection.execute(statements.LAST)
            cells = connection.execute(statements.CELLS)
            loads = connection.execute(statements.LOADS)
            selectors = connection.execute(statements.SELECTORS)
        facts, versions = Facts(), {}
        for row in cells.fetchall():
            facts.cells[row[0]] = cell_of(row)
            versions[cell_stream(row[0])] = row[-1]
        for cell_id, *load in loads.fetchall():
            facts.loads[cell_id] = Load(*load)
        for selector_id, generation, version in selectors.fetchall():
            facts.selector[selector_id] = generation
            versions[SELECTOR_STREAM] = version
        entry = last.fetchone()
        return Fleet(None if entry is None else Entry(*entry), facts, versions)

    def find(self, scan: Scan, limit: int) -> list[HostId]:
        rows = self._connection.execute(
            _SCANS[type(scan)], {**scan._asdict(), "limit": limit}
        ).fetchall()
        return [HostId(*row) for row in rows]

    def renew(self, cell_id: str, items: Sequence[Renewal], now: int) -> list[tuple[int, str]]:
        refused: list[tuple[int, str]] = []
        for wave in _once_each(items):
            asked = {"cell_id": cell_id, **_renewals(items, wave, now)}
            refused += self._connection.execute(statements.RENEW, asked, prepare=True).fetchall()
        return refused

    def extend(self, items: Sequence[Renewal], now: int) -> None:
        for wave in _once_each(items):
            asked = _renewals(items, wave, now)
            self._connection.execute(statements.EXTEND, asked, prepare=True)

    def commit(self, batch: Batch) -> None:
        with self._connection.pipeline():
            write(self._connection, batch)
            self._connection.execute("COMMIT")
        self.ended = True

    def _runtime(self, row: Any) -> CellRuntime:
        known = self._parsed.get(row[0])
        if known is None or known[0] != row:
            known = self._parsed[row[0]] = (row, runtime_of(row))
        return known[1]


def ask(connection: psycopg.Connection[Any], wanted: Wanted) -> Asked:
    """Send the questions; inside a pipeline their answers come later."""
    asked: Asked = {}
    if wanted.streams:
        streams = array([host_stream(host) for host in wanted.streams])
        parameters = [streams, FOLD_FINGERPRINT, streams]
        asked["streams"] = connection.execute(statements.STREAMS, parameters, prepare=True)
    if wanted.hosts:
        hosts = [array(column) for column in zip(*wanted.hosts, strict=True)]
        asked["liveness"] = connection.execute(statements.LIVENESS, hosts, prepare=True)
        asked["deadlines"] = connection.execute(statements.DEADLINES, hosts, prepare=True)
    if wanted.keys:
        keys = [array(wanted.keys)]
        asked["results"] = connection.execute(statements.RESULTS, keys, prepare=True)
    return asked


def told(wanted: Wanted, asked: Asked) -> Seen:
    """Read the answers."""
    rows = {name: cursor.fetchall() for name, cursor in asked.items()}
    return Seen(
        liveness=liveness_of(rows.get("liveness", []), rows.get("deadlines", [])),
        loaded=_loaded(wanted.streams, rows.get("streams", [])),
        results={row[0]: Result(*row) for row in rows.get("results", [])},
    )


def write(connection: psycopg.Connection[Any], batch: Batch) -> None:
    """Send all that a turn writes; inside a pipeline an error shows at its end."""
    if batch.entries:
        append(connection, batch.entries)
    for query, parameters in row_statements(batch.rows):
        connection.execute(query, parameters, prepare=True)
    if batch.results:
        columns = [array(column) for column in zip(*batch.results, strict=True)]
        connection.execute(statements.KEEP_RESULTS, columns, prepare=True)
    if batch.snapshots:
        _take_snapshots(connection, batch.snapshots)


def _renewals(items: Sequence[Renewal], wave: list[int], now: int) -> dict[str, Any]:
    users, hosts, activities, expiries = zip(*[items[it] for it in wave], strict=True)
    return {
        "now": now,
        "index": array(wave),
        "user_id": array(users),
        "relay_host_id": array(hosts),
        "activity_id": array(activities),
        "expires_at": array(expiries),
    }


def _once_each(items: Sequence[Renewal]) -> list[list[int]]:
    """The items' indexes, in as few rounds as it takes for no host to be in one twice."""
    waves: list[list[int]] = []
    rounds: Counter[tuple[str, str]] = Counter()
    for index, item in enumerate(items):
        host = item[:2]
        if rounds[host] == len(waves):
            waves.append([])
        waves[rounds[host]].append(index)
        rounds[host] += 1
    return waves


def _take_snapshots(connection: psycopg.Connection[Any], snapshots: list[Snapshot]) -> None:
    newest = {snapshot.host: snapshot for snapshot in snapshots}.values()
    parameters = (
        array([host_stream(it.host) for it in newest]),
        array([it.version for it in newest]),
        array([FOLD_FINGERPRINT] * len(newest)),
        json_array([write_assignment(it.assignment) for it in newest]),
    )
    connection.execute(statements.TAKE_SNAPSHOTS, parameters, prepare=True)


def _loaded(hosts: Sequence[HostId], rows: list[Any]) -> dict[HostId, Loaded]:
    streams = {host_stream(host): host for host in hosts}
    loaded = {host: Loaded(None, []) for host in hosts}
    for row in rows:
        entry, host = Entry(*row), streams[row[1]]
        if entry.topic == SNAPSHOT_TOPIC:
            taken = Snapshot(host, entry.version, read_assignment(entry.state))
            loaded[host] = Loaded(taken, [])
        else:
            loaded[host].entries.append(entry)
    return loaded
