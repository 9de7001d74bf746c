"""What a replayed trace showed."""

from dataclasses import dataclass, field
from typing import Any

from tests.conformance.traces import Trace


@dataclass
class Difference:
    """The first thing that differs: what was given, expected and got."""

    step: int
    operation: str
    given: Any
    expected: Any
    got: Any


@dataclass
class Verdict:
    """How far a trace went, and what was wrong."""

    trace: Trace
    reached: int = 0
    stopped_at: str | None = None
    steps: dict[str, int] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    difference: Difference | None = None

    @property
    def ok(self) -> bool:
        return self.difference is None
