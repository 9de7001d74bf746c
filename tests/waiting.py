"""Waiting until something happened, and no longer."""

import time
from collections.abc import Callable
from threading import Event

PAUSE_SECONDS = 0.01
SECONDS_MAX = 60.0


def until(happened: Callable[[], bool], seconds_max: float = SECONDS_MAX) -> None:
    """Ask again and again until it happened; it must happen in time."""
    deadline, never = time.monotonic() + seconds_max, Event()
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        never.wait(PAUSE_SECONDS)
