"""Time and ids, the two things that tests replace."""

import itertools
import secrets
import time
from typing import Protocol


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
    """Ids nobody can guess."""

    def new(self) -> str:
        return secrets.token_hex(12)


class CountedIds:
    """Ids in order, for tests."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def new(self) -> str:
        return f"id-{next(self._count)}"
