"""Running services: a fresh one a test, or one for all tests that change nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.postgres.server import Server, create_database, drop_database
from tests.http.running import Running, running


@pytest.fixture
def edge(database: str, tmp_path: Path) -> Iterator[Running]:
    """A service on a fresh database, with a virtual clock and no sweeps."""
    with running(database, tmp_path) as it:
        yield it


@pytest.fixture(scope="session")
def unchanged(
    server: Server, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A service without any cell or host, for tests whose requests are turned away."""
    name = f"tenure_test_{os.getpid()}_unchanged"
    drop_database(server, name)
    dsn = create_database(server, name, template=database_template)
    with running(dsn, tmp_path_factory.mktemp("unchanged")) as it:
        yield it
        assert it.head() == 0
    drop_database(server, name)


@pytest.fixture(scope="module")
def fuzzed(
    server: Server, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A service with one live cell that waits for no position."""
    name = f"tenure_test_{os.getpid()}_fuzzed"
    drop_database(server, name)
    dsn = create_database(server, name, template=database_template)
    with running(dsn, tmp_path_factory.mktemp("fuzzed")) as it:
        tail = it.service.tail

        async def beyond(position: int, _: float) -> bool:
            return tail.position > position

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tail, "beyond", beyond)
            it.live_cell()
            yield it
    drop_database(server, name)
