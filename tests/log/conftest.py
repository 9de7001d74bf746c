"""Both logs, for tests that they must pass alike."""

import pytest
from eventsourcing.persistence import ApplicationRecorder

from adapters.clock import SystemClock
from adapters.memory import MemoryStore
from adapters.memory_recorder import MemoryRecorder
from adapters.postgres.recorder import PostgresRecorder


@pytest.fixture(params=["memory", "postgres"])
def recorder(request: pytest.FixtureRequest) -> ApplicationRecorder:
    if request.param == "memory":
        return MemoryRecorder(MemoryStore(), SystemClock())
    return PostgresRecorder(request.getfixturevalue("database"))
