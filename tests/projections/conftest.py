"""A database with a log that has rows in every projection, made once and copied."""

import os
from collections.abc import Iterator

import pytest

from adapters.postgres.server import Server, create_database, drop_database
from tests.projections.logs import TRACES, fleet


@pytest.fixture(scope="session")
def recorded_template(server: Server, database_template: str) -> Iterator[str]:
    """The name of a database with the log of `TRACES` and no connection open."""
    name = f"tenure_test_{os.getpid()}_recorded"
    drop_database(server, name)
    with fleet(create_database(server, name, template=database_template)) as it:
        for trace in TRACES:
            it.play(trace)
        it.open_cells()
        it.place(0, 20)
    yield name
    drop_database(server, name)


@pytest.fixture
def recorded(server: Server, recorded_template: str) -> Iterator[str]:
    """The DSN of a fresh copy of the recorded log."""
    yield from _copied(server, recorded_template, "changed")


@pytest.fixture(scope="module")
def untouched(server: Server, recorded_template: str) -> Iterator[str]:
    """The DSN of a copy that a module's tests share: they leave every row as it is."""
    yield from _copied(server, recorded_template, "untouched")


def _copied(server: Server, template: str, use: str) -> Iterator[str]:
    name = f"{template}_{use}"
    drop_database(server, name)
    yield create_database(server, name, template=template)
    drop_database(server, name)
