"""Reading the log as an auditor: the chain is checked before anything is believed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from adapters.entry import EMPTY_HEAD, Entry, Head, first_broken
from adapters.mapper import EventMapper
from adapters.reading import EventReader
from projections.audit.snapshot import AuditSnapshot, Replay

PAGE_ENTRIES = 5_000

Tell = Callable[[int], None]
"""Told the position after each page."""


class Log(Protocol):
    """What an auditor needs of a log."""

    def before_first(self) -> Entry | None:
        """An entry below position 1, where none can be written."""

    def read(self, after: int, limit: int) -> list[Entry]: ...


class BrokenChain(Exception):
    """The log was altered at or before `position`: nothing from there on can be trusted."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the chain is broken at position {position}")
        self.position = position


class ForgedEntry(BrokenChain):
    """An entry stands before the first position, outside of the chain, yet in a stream."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.position)
        self.entry = entry

    def __str__(self) -> str:
        entry = self.entry
        return (
            f"position {entry.position} is before the beginning of the log: "
            f"version {entry.version} of {entry.stream} was forged"
        )


class HeadNotFound(Exception):
    """The log does not contain a head that was written down earlier."""


@dataclass(frozen=True, slots=True)
class WrittenHead:
    """A head that was noted outside of the log."""

    position: int
    chain: bytes


def checked_pages(log: Log, until: int | None = None) -> Iterator[list[Entry]]:
    """The entries from the first on, up to a position. Raises `BrokenChain`.

    Without `until` it goes to the end of the log.
    """
    forged = log.before_first()
    if forged is not None:
        raise ForgedEntry(forged)
    head = EMPTY_HEAD
    while until is None or head.position < until:
        limit = PAGE_ENTRIES if until is None else min(PAGE_ENTRIES, until - head.position)
        page = log.read(head.position, limit)
        broken = first_broken(head, page)
        if broken is not None:
            raise BrokenChain(broken)
        if not page:
            return
        head = head_of(page[-1])
        yield page


def check_log(log: Log, written: WrittenHead | None = None, tell: Tell = lambda _: None) -> Head:
    """Recompute the whole chain; answers the head. Raises `BrokenChain`, `HeadNotFound`."""
    head = EMPTY_HEAD
    found = written is None or (written.position == 0 and written.chain == head.chain)
    for page in checked_pages(log):
        if written is not None and page[0].position <= written.position <= page[-1].position:
            found = page[written.position - page[0].position].chain == written.chain
            if not found:
                raise HeadNotFound(
                    f"position {written.position} has another chain value than the head "
                    "written down: the log was rewritten at or before it"
                )
        head = head_of(page[-1])
        tell(head.position)
    if not found and written is not None:
        raise HeadNotFound(
            f"the log ends at position {head.position}, "
            f"before the head written down at {written.position}: its tail was cut"
        )
    return head


def take_snapshot(
    log: Log, until: int, mapper: EventMapper, tell: Tell = lambda _: None
) -> AuditSnapshot:
    """The state at position `until`, folded from a checked log.

    Raises `BrokenChain`, `HeadNotFound` when the log is shorter, `UnreadableEvent`.
    """
    replay, reader, head = Replay(), EventReader(mapper), EMPTY_HEAD
    for page in checked_pages(log, until):
        for entry in page:
            event = reader.read_entry(entry)
            replay.take(event, entry.version, entry.position)
        head = head_of(page[-1])
        tell(head.position)
    if head.position < until:
        raise HeadNotFound(f"the log ends at position {head.position}, before {until}")
    return replay.snapshot(*head)


def head_of(entry: Entry) -> Head:
    """The head of a log that ends with this entry."""
    return Head(entry.position, entry.chain, entry.recorded_at)
