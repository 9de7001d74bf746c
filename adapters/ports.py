"""What the log writer needs of a store. PostgreSQL and memory keep the same promises."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from adapters.entry import Entry, Head
from domain.ids import HostId
from domain.relay.assignment import Assignment
from domain.relay.command import Scan
from domain.relay.renewals import Renewal
from domain.relay.runtime import CellRuntime, Liveness
from domain.relay.turn import Facts
from domain.relay.views import CellUse, CellView, Place
from projections.table import Rows

CATCH_UP_ENTRIES_MAX = 10_000
"""A writer that missed so much reads the fleet anew, rather than all of it under the lock."""


class Overtaken(Exception):
    """Another writer had a turn in between; what was decided ahead of the lock is void."""


class Unavailable(Exception):
    """The store cannot be reached, or what became of a commit is unknown; try again."""


class Stalled(Unavailable):
    """Another session held a lock for too long; the turn was taken back and wrote nothing."""


class Result(NamedTuple):
    """A stored outcome of a command with an idempotency key."""

    key: str
    fingerprint: str
    answer: str
    """JSON: {"ok": …} or {"refusal": code, "facts": …}."""
    position: int
    stored_at: int
    """Epoch ms."""


class Snapshot(NamedTuple):
    """A host's assignment as folded up to a stream version."""

    host: HostId
    version: int
    assignment: Assignment


class Fleet(NamedTuple):
    """The last entry; all cells, their loads, the selector, and the versions of their streams."""

    last: Entry | None
    facts: Facts
    versions: dict[str, int]


class Loaded(NamedTuple):
    """A stream's newest usable snapshot and the entries after it."""

    snapshot: Snapshot | None
    entries: list[Entry]


@dataclass(slots=True)
class Wanted:
    """What a turn must see before it can decide."""

    streams: Sequence[HostId] = ()
    """Hosts whose streams are not in the writer's cache."""
    hosts: Sequence[HostId] = ()
    """Hosts whose volatile rows it needs."""
    keys: Sequence[str] = ()
    """Idempotency keys that may have outcomes."""


@dataclass(slots=True)
class Seen:
    """What the store told of it. Hosts without a row are missing in `liveness`."""

    liveness: dict[HostId, Liveness]
    loaded: dict[HostId, Loaded]
    results: dict[str, Result]


@dataclass(slots=True)
class Opened:
    """What a turn is told when it has the lock. All exact until the transaction ends."""

    turn: int
    """The number of this turn, over all writers of the database."""
    entries: list[Entry]
    runtimes: dict[str, CellRuntime]
    seen: Seen


@dataclass(slots=True)
class Batch:
    """What a turn writes, all or nothing."""

    entries: list[Entry] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)
    results: list[Result] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)


class Transaction(Protocol):
    """One turn's transaction. It holds the writer lock from `open` on."""

    def open(self, after: int | None, wanted: Wanted) -> Opened:
        """Take the lock and a turn; read the entries `after` a position, if it is given.

        At most `CATCH_UP_ENTRIES_MAX`: so many may not be all.
        """

    def see(self, wanted: Wanted) -> Seen:
        """Look at more, with the lock already held."""

    def fleet(self) -> Fleet: ...

    def find(self, scan: Scan, limit: int) -> list[HostId]: ...

    def renew(self, cell_id: str, items: Sequence[Renewal], now: int) -> list[tuple[int, str]]:
        """Extend deadlines where the rules allow it; index and refusal code of each other item."""

    def extend(self, items: Sequence[Renewal], now: int) -> None:
        """Extend deadlines that the rules are known to allow."""

    def commit(self, batch: Batch) -> None: ...


class Seeing(Protocol):
    """A look on its way."""

    def finish(self) -> Seen:
        """Wait for what was seen. Raises `Unavailable`."""


class Committing(Protocol):
    """A commit on its way."""

    def fileno(self) -> int | None:
        """A descriptor that is readable when `finish` will not have to wait long, if any."""

    def finish(self) -> None:
        """Wait for the commit.

        Raises `Overtaken` if another writer had a turn since, `Unavailable` (but not `Stalled`)
        if what became of it is unknown; any other error means that nothing was written.
        """


class Store(Protocol):
    """A log with its projections and volatile rows."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a turn; leaving it without `commit` takes everything back."""

    def preload(self, wanted: Wanted) -> Seeing:
        """Begin to look outside any turn, while one may be committing."""

    def commit_ahead(self, batch: Batch, turn: int) -> Committing:
        """Begin to commit what was decided without the lock, if this is turn number `turn`."""

    def committed(self, entry: Entry) -> bool:
        """Whether exactly this entry is in the log, judged while holding the writer lock."""

    def stored(self, keys: Sequence[str]) -> dict[str, Result]:
        """The stored outcomes of these idempotency keys, judged while holding the lock."""

    def reopen(self) -> None:
        """Leave a broken connection behind."""

    def close(self) -> None: ...


class LogReader(Protocol):
    """Reading the log and the projections, outside any turn."""

    def head(self) -> Head: ...

    def read(self, after: int, limit: int) -> list[Entry]: ...

    def place(self, host: HostId) -> Place | None: ...

    def views(self) -> list[CellView]:
        """All cells with load and runtime, ordered by id."""

    def use(self, cell_id: str) -> CellUse: ...

    def dump(self, table_name: str) -> list[tuple[Any, ...]]:
        """All rows of a table, ordered by key, JSON columns as text."""
