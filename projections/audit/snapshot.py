"""The state of all projections at a position of the log, as canonical JSON with its digest."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from domain.events import Event
from projections.catalogue import PROJECTIONS, Folder
from projections.table import Projection, Rows
from projections.verify import State

FORMAT = 1


@dataclass(frozen=True, slots=True)
class AuditSnapshot:
    """Canonical JSON (sorted names, no spaces, UTF-8, rows by key) and its SHA-256 in hex."""

    document: bytes
    sha256: str
    position: int
    chain: str
    """The log's chain value at the position, in hex."""
    recorded_at: int
    """When the entry at the position was recorded, epoch microseconds; 0 for an empty log."""


class Replay:
    """Folds events in order into the rows that an audit snapshot shows."""

    def __init__(self, projections: Sequence[Projection] = PROJECTIONS) -> None:
        self._projections = projections
        self._folder = Folder(projections)
        self._state = State(projections)

    def take(self, event: Event, version: int, position: int) -> None:
        """Fold the next event of the log."""
        rows = Rows()
        self._folder.fold(event, version, position, rows)
        self._state.take(rows)

    def snapshot(self, position: int, chain: bytes, recorded_at: int) -> AuditSnapshot:
        """The state as it is now; the head says which log it was folded from."""
        head = {"position": position, "chain": chain.hex(), "recorded_at_us": recorded_at}
        told: dict[str, Any] = {
            "format": FORMAT,
            "head": head,
            "projections": {it.name: it.version for it in self._projections},
            "tables": {
                table.name: [
                    dict(zip(table.columns, row, strict=True)) for row in self._state.ordered(table)
                ]
                for it in self._projections
                for table in it.tables
            },
        }
        document = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(document).hexdigest()
        return AuditSnapshot(document, digest, position, chain.hex(), recorded_at)
