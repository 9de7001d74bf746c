"""A PostgreSQL to use: a given one, or an embedded one. Nothing else knows which it is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from adapters.postgres.embedded import embedded_server
from adapters.postgres.unavailable import (
    DURABILITY_OFF,
    SERVER_NOT_REACHABLE,
    SERVER_TOO_OLD,
    ServerUnavailable,
)

__all__ = [
    "Server",
    "ServerUnavailable",
    "check_server",
    "check_settings",
    "create_database",
    "drop_database",
    "open_server",
]

VERSION_MIN = 15
CONNECT_SECONDS_MAX = 10
DURABILITY_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit")
SETTINGS_SEEN = (
    "server_version",
    "server_version_num",
    *DURABILITY_SETTINGS,
    "data_checksums",
    "max_connections",
)


@dataclass(frozen=True)
class Server:
    """A server that passed `check_server`; `dsn` leads to one of its databases."""

    dsn: str
    embedded: bool


@contextmanager
def open_server(url: str | None, data_dir: Path, *, allow_unsafe: bool = False) -> Iterator[Server]:
    """Use the server at `url`, or without one the embedded server of `data_dir`.

    Raises `ServerUnavailable`. An embedded server is shared by all processes that have it open
    and is stopped when the last of them leaves or dies.
    """
    if url is not None:
        check_server(url, allow_unsafe=allow_unsafe)
        yield Server(url, embedded=False)
        return
    with embedded_server(data_dir) as dsn:
        check_server(dsn, allow_unsafe=allow_unsafe)
        yield Server(dsn, embedded=True)


def check_server(dsn: str, *, allow_unsafe: bool) -> dict[str, str]:
    """The settings of the server that matter, by name; raises `ServerUnavailable`."""
    with _connected(dsn) as connection:
        rows = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(SETTINGS_SEEN)]
        ).fetchall()
    settings: dict[str, str] = dict(rows)
    check_settings(settings, allow_unsafe=allow_unsafe)
    return settings


def check_settings(settings: Mapping[str, str], *, allow_unsafe: bool) -> None:
    """Refuse a server too old, or one that may forget what it acknowledged."""
    if int(settings["server_version_num"]) < VERSION_MIN * 10_000:
        raise ServerUnavailable(
            SERVER_TOO_OLD,
            f"PostgreSQL {settings['server_version']} is too old: {VERSION_MIN} or newer is needed",
        )
    off = [name for name in DURABILITY_SETTINGS if settings[name] == "off"]
    if off and not allow_unsafe:
        raise ServerUnavailable(
            DURABILITY_OFF, f"{', '.join(off)} off: a crash would lose acknowledged commands"
        )


def create_database(server: Server, name: str, *, template: str = "template0") -> str:
    """Create a UTF-8 database that orders text by code point; returns its DSN."""
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} ENCODING 'UTF8' LOCALE 'C'")
    with _connected(server.dsn) as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
    return make_conninfo(server.dsn, dbname=name)


def drop_database(server: Server, name: str) -> None:
    """Drop a database if it is there, cutting off its connections."""
    statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    with _connected(server.dsn) as connection:
        connection.execute(statement.format(sql.Identifier(name)))


@contextmanager
def _connected(dsn: str) -> Iterator[psycopg.Connection[TupleRow]]:
    try:
        seconds = conninfo_to_dict(dsn).get("connect_timeout", CONNECT_SECONDS_MAX)
        patient = make_conninfo(dsn, connect_timeout=seconds)
    except psycopg.ProgrammingError:
        # Its own message would repeat what it could not read: the password, too.
        raise ServerUnavailable(
            SERVER_NOT_REACHABLE, "the database URL is not one that PostgreSQL understands"
        ) from None
    try:
        connection = psycopg.connect(patient, autocommit=True)
    except psycopg.Error as error:
        raise ServerUnavailable(
            SERVER_NOT_REACHABLE, f"PostgreSQL is not reachable: {error}"
        ) from error
    with connection:
        yield connection
