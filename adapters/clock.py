"""Time and ids, the two things that tests replace."""

import itertools
import secrets
import time
from typing import Protocol

ID_BYTES = 12
IDS_PER_DRAW = 1_024


class Clock(Protocol):
    """Wall time."""

    def now_us(self) -> int:
        """Epoch microseconds."""

    def now_ms(self) -> int:
        """Epoch milliseconds, the unit of the rules."""


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class VirtualClock:
    """A clock that stands still until it is set."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def set(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_us(self) -> int:
        return self._now_ms * 1_000

    def now_ms(self) -> int:
        return self._now_ms


class Ids(Protocol):
    """A source of new ids."""

    def new(self) -> str: ...


class RandomIds:
    """Ids nobody can guess, cut from entropy that is drawn in blocks. For one thread.

    Each system call lets another thread take the interpreter; at thousands of ids a second the
    event loop would wait more for its turn than it works.
    """

    def __init__(self) -> None:
        self._pool = ""

    def new(self) -> str:
        if not self._pool:
            self._pool = secrets.token_hex(ID_BYTES * IDS_PER_DRAW)
        cut = len(self._pool) - 2 * ID_BYTES
        new, self._pool = self._pool[cut:], self._pool[:cut]
        return new


class CountedIds:
    """Ids in order, for tests."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def new(self) -> str:
        return f"id-{next(self._count)}"
