"""Ids nobody can guess, without a system call each.

Every system call lets another thread take the interpreter; at thousands of ids a second the event
loop would wait more for its turn than it works.
"""

import secrets

ID_BYTES = 12
IDS_PER_DRAW = 1_024


class PooledRandomIds:
    """Random ids cut from entropy that is drawn in blocks. For one thread."""

    def __init__(self) -> None:
        self._pool = ""

    def new(self) -> str:
        if not self._pool:
            self._pool = secrets.token_hex(ID_BYTES * IDS_PER_DRAW)
        cut = len(self._pool) - 2 * ID_BYTES
        new, self._pool = self._pool[cut:], self._pool[:cut]
        return new
