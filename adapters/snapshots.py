"""Snapshots of long streams. One taken by other folding code is never used."""

import hashlib
import inspect

from pydantic import TypeAdapter

from domain.relay import activity, assignment, connection, control, placement
from domain.relay.assignment import Assignment

_ADAPTER = TypeAdapter(Assignment)
_FOLDING = (assignment, placement, activity, control, connection)

SNAPSHOT_TOPIC = "snapshot"
"""What a snapshot is called where it stands among stored events."""

FOLD_FINGERPRINT = hashlib.sha256(
    "".join(inspect.getsource(module) for module in _FOLDING).encode()
).hexdigest()[:16]
"""Changes whenever a module that folds assignments changes."""


def write_assignment(held: Assignment) -> str:
    """An assignment as compact JSON."""
    return _ADAPTER.dump_json(held).decode()


def read_assignment(state: str | bytes) -> Assignment:
    """An assignment from its JSON."""
    return _ADAPTER.validate_json(state)
