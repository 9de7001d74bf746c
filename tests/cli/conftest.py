"""A database with a few hosts on it, as the service would have left it."""

from collections.abc import Iterator

import pytest

from adapters.postgres.server import Server, create_database, drop_database
from tests.projections.logs import fleet


@pytest.fixture(autouse=True)
def _unsafe_durability_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' server may have been given by somebody who does not care."""
    monkeypatch.setenv("TENURE_ALLOW_UNSAFE_DURABILITY", "true")


@pytest.fixture(scope="session")
def fleet_template(server: Server, database_template: str) -> Iterator[str]:
    name = f"{database_template}_fleet"
    drop_database(server, name)
    with fleet(create_database(server, name, template=database_template)) as it:
        it.open_cells(3)
        it.place(0, 5)
    yield name
    drop_database(server, name)


@pytest.fixture
def dsn(server: Server, fleet_template: str) -> Iterator[str]:
    """The DSN of a fresh copy."""
    name = f"{fleet_template}_copy"
    drop_database(server, name)
    yield create_database(server, name, template=fleet_template)
    drop_database(server, name)
