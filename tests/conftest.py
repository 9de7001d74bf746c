"""A PostgreSQL for the tests: one server a session, one fresh database a test."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from adapters.postgres import migrate
from adapters.postgres.server import Server, create_database, drop_database, open_server

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server at TENURE_TEST_DATABASE_URL, or an embedded one that ends with the session.

    Not in a folder of pytest's: root's next session would close that to the server's account.
    """
    url = os.environ.get("TENURE_TEST_DATABASE_URL") or None
    with (
        tempfile.TemporaryDirectory(prefix="tenure-") as folder,
        open_server(url, Path(folder), allow_unsafe=True) as opened,
    ):
        yield opened


@pytest.fixture(scope="session")
def database_template(server: Server) -> Iterator[str]:
    """The name of a database with all migrations applied and no connection open."""
    name = f"tenure_test_{os.getpid()}_template"
    drop_database(server, name)
    dsn = create_database(server, name)
    with psycopg.connect(dsn) as connection:
        migrate.apply(connection)
    yield name
    drop_database(server, name)


@pytest.fixture
def database(server: Server, database_template: str) -> Iterator[str]:
    """The DSN of a fresh database with all migrations applied."""
    yield from _fresh(server, database_template)


@pytest.fixture
def empty_database(server: Server) -> Iterator[str]:
    """The DSN of a fresh database with nothing in it."""
    yield from _fresh(server, "template0")


def _fresh(server: Server, template: str) -> Iterator[str]:
    name = f"tenure_test_{os.getpid()}_{next(_NUMBERS)}"
    drop_database(server, name)
    yield create_database(server, name, template=template)
    drop_database(server, name)
