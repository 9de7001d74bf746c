"""Committing and looking while Python decides on: sent now, the answers are read later."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from adapters.ports import Batch, Overtaken, Seen, Stalled, Unavailable, Wanted
from adapters.postgres import statements
from adapters.postgres.transaction import ask, told, write


@contextmanager
def broken_connections_are_unavailable() -> Iterator[None]:
    """Tell a store that cannot answer now from one that was asked something wrong."""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise Stalled(type(error).__name__) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise Unavailable(type(error).__name__) from error


class PostgresCommit:
    """One transaction in one pipeline. The server works on it while Python decides on."""

    def __init__(self, connection: psycopg.Connection[Any], batch: Batch, turn: int) -> None:
        self._connection = connection
        self._pipeline = connection.pipeline()
        self._pipeline.__enter__()
        self._sent = False
        self._failure: psycopg.Error | None = None
        try:
            connection.execute("BEGIN")
            connection.execute(statements.LOCK, prepare=True)
            connection.execute(statements.TAKE_THIS_TURN, [turn], prepare=True)
            write(connection, batch)
            connection.execute("COMMIT")
            connection.pgconn.send_flush_request()
            self._sent = connection.pgconn.flush() == 0
        except psycopg.Error as error:  # an early answer may come while more is being sent
            self._failure = error

    def fileno(self) -> int | None:
        return self._connection.fileno() if self._sent else None

    def finish(self) -> None:
        with broken_connections_are_unavailable():
            try:
                self._pipeline.__exit__(None, None, None)
            except psycopg.Error as error:
                self._failure = self._failure or error
            if self._failure is None:
                return
            if not self._connection.closed:
                self._connection.execute("ROLLBACK")
            if self._failure.sqlstate == statements.OVERTAKEN:
                raise Overtaken from self._failure
            raise self._failure


class PostgresLook:
    """Questions sent in one pipeline, outside any transaction."""

    def __init__(self, connection: psycopg.Connection[Any], wanted: Wanted) -> None:
        self._wanted = wanted
        self._pipeline = connection.pipeline()
        self._pipeline.__enter__()
        self._asked = ask(connection, wanted)
        connection.pgconn.send_flush_request()
        connection.pgconn.flush()

    def finish(self) -> Seen:
        with broken_connections_are_unavailable():
            self._pipeline.__exit__(None, None, None)
            return told(self._wanted, self._asked)
