"""Whether commands that wait are being committed."""

import time
from collections import deque

from app.answers import Waiting


class Pulse:
    """Knows who waits, and when anybody was last committed. The caller takes care of threads."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._committed_at = 0.0

    def took(self, waiting: Waiting) -> None:
        self._leave_out_answered()
        self._waiting.append(waiting)

    def committed(self) -> None:
        self._committed_at = time.monotonic()

    @property
    def stalled_seconds(self) -> float:
        """How long commands have been waiting without any being committed."""
        self._leave_out_answered()
        if not self._waiting:
            return 0.0
        return time.monotonic() - max(self._waiting[0].since, self._committed_at)

    def _leave_out_answered(self) -> None:
        while self._waiting and self._waiting[0].future.done():
            self._waiting.popleft()
