"""Both logs, for tests that they must pass alike."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from eventsourcing.persistence import ApplicationRecorder

from adapters.clock import SystemClock
from adapters.memory import MemoryStore
from adapters.memory_recorder import MemoryRecorder
from adapters.postgres.recorder import PostgresRecorder


@pytest.fixture(params=["memory", "postgres"])
def recorder(request: pytest.FixtureRequest) -> Iterator[ApplicationRecorder]:
    if request.param == "memory":
        yield MemoryRecorder(MemoryStore(), SystemClock())
        return
    with closing(PostgresRecorder(request.getfixturevalue("database"))) as recorder:
        yield recorder
