"""Each recorded trace, as far as it is reached, in memory and on PostgreSQL."""

from pathlib import Path

import pytest

from tests.conformance.relay import replay_in_memory, replay_on_postgres
from tests.conformance.traces import VECTORS, read_trace

PATHS = sorted(VECTORS.glob("*.jsonl*"))
LATER = {"09", "10", "12", "13", "22", "64"}
WHOLE = {f"dir-{n:02}" for n in (*range(1, 24), 49, 61, 62, 64) if f"{n:02}" not in LATER}
"""Traces that use no operation of a later issue."""


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.split(".")[0])
def test_trace_in_memory(path: Path) -> None:
    verdict = replay_in_memory(read_trace(path))
    assert verdict.difference is None
    if path.name[:6] in WHOLE:
        assert verdict.reached == verdict.trace.steps


def test_traces_on_postgres(database: str) -> None:
    for path in PATHS:
        verdict = replay_on_postgres(read_trace(path), database)
        assert verdict.difference is None, verdict.trace.name


def test_there_are_traces() -> None:
    assert len(PATHS) == 124
