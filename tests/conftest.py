"""A PostgreSQL for the tests: one server a session, one fresh database a test."""

import itertools
import os
from collections.abc import Iterator

import psycopg
import pytest

from adapters.postgres import migrate
from adapters.postgres.server import Server, create_database, drop_database, open_server

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server at TENURE_TEST_DATABASE_URL, or an embedded one that ends with the session."""
    url = os.environ.get("TENURE_TEST_DATABASE_URL") or None
    with open_server(url, tmp_path_factory.mktemp("server"), allow_unsafe=True) as opened:
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
