"""Where commands arrive: any thread puts, one thread waits, also for a commit to end."""

import select
import socket
from collections import deque

from adapters.ports import Committing
from app.answers import Waiting


class Inbox:
    """A queue whose reader can wait for a descriptor at the same time."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._asleep = False
        self._alarm, self._bell = socket.socketpair()
        self._alarm.setblocking(False)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, *waiting: Waiting) -> None:
        self._waiting.extend(waiting)
        if self._asleep:
            self._bell.send(b"!")

    def close(self) -> None:
        """Wake the reader up for good."""
        self._bell.close()

    def discard(self) -> None:
        """Give the descriptors back; the reader's last act."""
        self._alarm.close()

    def take(self) -> list[Waiting]:
        """Everything that has arrived."""
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def wait(self, commit: Committing | None, block: bool) -> bool:
        """Wait, if `block`, for an arrival or the commit's end; whether the commit has ended."""
        descriptor = None if commit is None else commit.fileno()
        if commit is not None and descriptor is None:
            return True
        self._asleep = block
        if self._waiting:
            block = False  # it came before it could ring
        poll = select.poll()
        poll.register(self._alarm, select.POLLIN)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        ready = {ready for ready, _ in poll.poll(None if block else 0)}
        self._asleep = False
        if self._alarm.fileno() in ready:
            self._silence()
        return descriptor in ready

    def _silence(self) -> None:
        try:
            self._alarm.recv(4_096)
        except BlockingIOError:
            return
