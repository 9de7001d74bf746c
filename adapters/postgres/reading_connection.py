"""A connection that many reads share, whatever thread they come from."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import psycopg


class ReadingConnection:
    """Opened when something is read, kept until `close`; after that the next read opens it again.

    What a lost connection leaves unanswered is asked once more on a new one: reads may be repeated.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lock = Lock()
        self._kept: psycopg.Connection[Any] | None = None

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of the answer."""
        with self._lock:
            kept = self._kept
            if kept is not None:
                try:
                    return _fetch(kept, query, parameters)
                except (psycopg.OperationalError, psycopg.InterfaceError):
                    if not kept.closed:
                        raise
            self._kept = psycopg.connect(self._dsn, autocommit=True, application_name="tenure-log")
            return _fetch(self._kept, query, parameters)

    def close(self) -> None:
        with self._lock:
            if self._kept is not None:
                self._kept.close()
            self._kept = None


def _fetch(
    connection: psycopg.Connection[Any], query: str, parameters: Sequence[Any]
) -> list[tuple[Any, ...]]:
    # Binary, so that stored states come as they are instead of as hex.
    return connection.execute(query, parameters, binary=True).fetchall()
