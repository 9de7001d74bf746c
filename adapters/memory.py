"""A store in memory: the same promises as PostgreSQL, for tests and dry runs."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from adapters import ports
from adapters.entry import EMPTY_HEAD, Entry, Head
from adapters.ports import Batch, Fleet, Loaded, Opened, Overtaken, Result, Seen, Wanted
from adapters.streams import SELECTOR_STREAM, cell_stream, host_stream
from domain.ids import HostId
from domain.relay.command import (
    ExpiredCounts,
    ExpiredLeases,
    LapsingConnections,
    ObservedConnections,
    Scan,
)
from domain.relay.renewals import Renewal
from domain.relay.runtime import SILENT, Deadline, Liveness, TouchDeadline, TouchLiveness
from domain.relay.turn import Facts, Load
from domain.relay.views import CellUse, CellView, Place, pending_control
from projections.catalogue import TABLES
from projections.relay import volatile
from projections.relay.assignments import ASSIGNMENTS
from projections.relay.cells import CELLS, SELECTOR, cell_of
from projections.relay.connections import CONNECTION_RESERVATIONS
from projections.relay.leases import ACTIVITY_LEASES
from projections.relay.reservations import CELL_RESERVATIONS
from projections.table import Key, Row, Rows, Table


class MemoryStore:
    """Log, projections and volatile rows in dictionaries, under one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.grown = threading.Condition(self.lock)
        self.turns = 0
        self.entries: list[Entry] = []
        self.streams: dict[str, list[Entry]] = {}
        self.results: dict[str, Result] = {}
        self.tables: dict[Table, dict[Key, Row]] = {t: {} for t in (*TABLES, *volatile.TABLES)}

    @contextmanager
    def transaction(self) -> Iterator["MemoryTransaction"]:
        with self.lock:
            yield MemoryTransaction(self)

    def preload(self, wanted: Wanted) -> "MemoryLook":
        with self.lock:
            return MemoryLook(MemoryTransaction(self).see(wanted))

    def commit_ahead(self, batch: Batch, turn: int) -> "MemoryCommit":
        with self.lock:
            self.turns += 1
            overtaken = self.turns != turn
            if not overtaken:
                MemoryTransaction(self).commit(batch)
        return MemoryCommit(overtaken)

    def committed(self, entry: Entry) -> bool:
        with self.lock:
            self.turns += 1
            return entry in self.entries[entry.position - 1 : entry.position]

    def stored(self, keys: Sequence[str]) -> dict[str, Result]:
        with self.lock:
            self.turns += 1
            return {key: self.results[key] for key in keys if key in self.results}

    def reopen(self) -> None:
        """Memory does not break."""

    def close(self) -> None:
        """Nothing to give back."""

    def head(self) -> Head:
        if not self.entries:
            return EMPTY_HEAD
        last = self.entries[-1]
        return Head(last.position, last.chain, last.recorded_at)

    def before_first(self) -> Entry | None:
        return None

    def read(self, after: int, limit: int) -> list[Entry]:
        return self.entries[after : after + limit]

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries that follow the head; the caller holds the lock."""
        for entry in entries:
            self.entries.append(entry)
            self.streams.setdefault(entry.stream, []).append(entry)
        self.grown.notify_all()

    def place(self, host: HostId) -> Place | None:
        held = self.tables[ASSIGNMENTS].get(host)
        alive = self.tables[volatile.ASSIGNMENT_LIVENESS].get(host)
        if held is None or alive is None:
            return None
        user_id, relay_host_id, cell_id, epoch = held[:4]
        return Place(user_id, relay_host_id, cell_id, epoch, alive[2])

    def views(self) -> list[CellView]:
        loads, runtimes = self.tables[CELL_RESERVATIONS], self.tables[volatile.CELL_RUNTIME]
        return [
            CellView(
                cell_of(tuple(row)),
                Load(*loads[key][1:]),
                volatile.runtime_of(runtimes[key]) if key in runtimes else SILENT,
            )
            for key, row in sorted(self.tables[CELLS].items())
        ]

    def use(self, cell_id: str) -> CellUse:
        leases = [row for row in self.tables[ACTIVITY_LEASES].values() if row[4] == cell_id]
        return CellUse(
            sum(row[2] == cell_id for row in self.tables[ASSIGNMENTS].values()),
            len(leases),
            sum(pending_control(row[2], row[3], row[5]) for row in leases),
        )

    def dump(self, table_name: str) -> list[tuple[Any, ...]]:
        table = next(it for it in self.tables if it.name == table_name)
        return [tuple(row) for _, row in sorted(self.tables[table].items())]


class MemoryLook:
    """A look that is over as soon as it began."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def finish(self) -> Seen:
        return self._seen


class MemoryCommit:
    """A commit that is over as soon as it began."""

    def __init__(self, overtaken: bool) -> None:
        self._overtaken = overtaken

    def fileno(self) -> None:
        return None

    def finish(self) -> None:
        if self._overtaken:
            raise Overtaken


def write_rows(tables: dict[Table, dict[Key, Row]], rows: Rows) -> None:
    """Apply changes to tables in memory."""
    for table, changes in rows.changes.items():
        known = tables[table]
        for key, change in changes.items():
            if change is None:
                known.pop(key, None)
            elif isinstance(change, list):
                known[key] = change
            else:
                row = list(known[key])
                for name, value in change.items():
                    row[table.index[name]] = value
                known[key] = row


class MemoryTransaction:
    """A turn on the memory store; its lock is held for the turn."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._tables = store.tables

    def open(self, after: int | None, wanted: Wanted) -> Opened:
        self._store.turns += 1
        runtimes = self._tables[volatile.CELL_RUNTIME].items()
        return Opened(
            turn=self._store.turns,
            entries=[] if after is None else self._store.read(after, ports.CATCH_UP_ENTRIES_MAX),
            runtimes={key[0]: volatile.runtime_of(row) for key, row in runtimes},
            seen=self.see(wanted),
        )

    def see(self, wanted: Wanted) -> Seen:
        results = self._store.results
        return Seen(
            liveness=self._liveness(wanted.hosts),
            loaded={
                host: Loaded(None, list(self._store.streams.get(host_stream(host), ())))
                for host in wanted.streams
            },
            results={key: results[key] for key in wanted.keys if key in results},
        )

    def fleet(self) -> Fleet:
        cells = [tuple(row) for row in self._tables[CELLS].values()]
        loads = self._tables[CELL_RESERVATIONS].values()
        selectors = self._tables[SELECTOR].values()
        versions = {cell_stream(row[0]): row[-1] for row in cells}
        for row in selectors:
            versions[SELECTOR_STREAM] = row[2]
        facts = Facts(
            cells={row[0]: cell_of(row) for row in cells},
            loads={row[0]: Load(*row[1:]) for row in loads},
            selector={row[0]: row[1] for row in selectors},
        )
        entries = self._store.entries
        return Fleet(entries[-1] if entries else None, facts, versions)

    def find(self, scan: Scan, limit: int) -> list[HostId]:
        return list(dict.fromkeys(self._search(scan)))[:limit]

    def renew(self, cell_id: str, items: Sequence[Renewal], now: int) -> list[tuple[int, str]]:
        refused = []
        for index, item in enumerate(items):
            host = (item.user_id, item.relay_host_id)
            lease_key = (*host, item.activity_id)
            held = self._tables[ASSIGNMENTS].get(host)
            lease = self._tables[ACTIVITY_LEASES].get(lease_key)
            if held is None:
                refused.append((index, "assignment_not_found"))
            elif held[2] != cell_id:
                refused.append((index, "activity_cell_not_authoritative"))
            elif lease is None:
                refused.append((index, "control_activity_not_found"))
            elif lease[3] != "control" or lease[4] != cell_id:
                refused.append((index, "control_activity_moved"))
            else:
                self.extend([item], now)
        return refused

    def extend(self, items: Sequence[Renewal], now: int) -> None:
        for item in items:
            host = HostId(item.user_id, item.relay_host_id)
            alive = self._liveness([host]).get(host, Liveness(0, 0))
            known = alive.deadlines.get(item.activity_id, Deadline(0, 0))
            expires_at = max(alive.lease_expires_at, item.expires_at)
            after = Deadline(max(known.expires_at, item.expires_at), max(known.updated_at, now))
            rows = Rows()
            touch = TouchLiveness(*host, expires_at, max(alive.last_activity_at, now))
            volatile.apply_touch(touch, rows)
            volatile.apply_touch(TouchDeadline(*host, item.activity_id, after), rows)
            write_rows(self._tables, rows)

    def commit(self, batch: Batch) -> None:
        write_rows(self._tables, batch.rows)
        for result in batch.results:
            self._store.results[result.key] = result
        self._store.append(batch.entries)

    def _liveness(self, hosts: Sequence[HostId]) -> dict[HostId, Liveness]:
        known = self._tables[volatile.ASSIGNMENT_LIVENESS]
        deadlines = self._tables[volatile.LEASE_DEADLINES]
        leases = [row for key, row in deadlines.items() if key[:2] in hosts] if hosts else []
        return volatile.liveness_of([known[it] for it in hosts if it in known], leases)

    def _search(self, scan: Scan) -> Iterator[HostId]:
        if isinstance(scan, ObservedConnections | LapsingConnections):
            for row in self._tables[CONNECTION_RESERVATIONS].values():
                if _connection_matches(scan, row):
                    yield HostId(row[0], row[1])
        elif isinstance(scan, ExpiredLeases):
            deadlines = self._tables[volatile.LEASE_DEADLINES].values()
            for row in sorted(deadlines, key=itemgetter(3)):
                if row[3] <= scan.now:
                    yield HostId(row[0], row[1])
        elif isinstance(scan, ExpiredCounts):
            for key, row in self._tables[volatile.ASSIGNMENT_LIVENESS].items():
                if row[2] <= scan.now and any(self._tables[ASSIGNMENTS][key][4:]):
                    yield HostId(*key)
        else:
            for key, row in self._tables[volatile.REGION_PREFERENCES].items():
                if row[3] < scan.before:
                    yield HostId(*key)


def _connection_matches(scan: ObservedConnections | LapsingConnections, row: Row) -> bool:
    cell_id, state, watermark, timeout_at = row[4], row[6], row[7], row[10]
    if isinstance(scan, LapsingConnections):
        since = scan.now if state == "reserved" else scan.retired_at
        return state in ("reserved", "late-arrival-debt") and bool(timeout_at <= since)
    if cell_id != scan.cell_id:
        return False
    if state == "claimed":
        return watermark is not None and bool(watermark <= scan.inclusion_watermark)
    return state == "late-arrival-debt" and bool(timeout_at <= scan.now)
