"""One line of the log, and the chain that proves nobody edited the lines before it."""

import hashlib
import struct
from dataclasses import dataclass
from typing import NamedTuple

GENESIS = bytes(32)
"""The chain value before the first position."""

_NUMBER = struct.Struct(">q")
_LENGTH = struct.Struct(">I")


class Entry(NamedTuple):
    """A stored event: its place in the log and in its stream, its JSON, its chain value."""

    position: int
    stream: str
    version: int
    topic: str
    state: str
    recorded_at: int
    """Epoch microseconds, never decreasing over positions."""
    chain: bytes


class Head(NamedTuple):
    """How far the log goes, and the value that all of it hashes to."""

    position: int
    chain: bytes
    recorded_at: int


EMPTY_HEAD = Head(0, GENESIS, 0)


@dataclass(frozen=True, slots=True)
class Meta:
    """Who asked for an event, and in what connection."""

    command_id: str
    actor: str
    correlation_id: str | None = None
    causation_id: str | None = None
    trace_id: str | None = None


def chained(
    previous: bytes,
    position: int,
    stream: str,
    version: int,
    topic: str,
    state: str,
    recorded_at: int,
) -> bytes:
    """SHA-256 of the previous value and of this entry's parts, each with its length."""
    parts = (
        _NUMBER.pack(position),
        stream.encode(),
        _NUMBER.pack(version),
        topic.encode(),
        state.encode(),
        _NUMBER.pack(recorded_at),
    )
    hashed = [previous]
    for part in parts:
        hashed += (_LENGTH.pack(len(part)), part)
    return hashlib.sha256(b"".join(hashed)).digest()


def first_broken(previous: Head, entries: list[Entry]) -> int | None:
    """The first position that is missing, out of order or does not hash to its chain value."""
    position, chain, recorded_at = previous
    for entry in entries:
        position += 1
        expected = chained(chain, position, *entry[1:6])
        if entry.position != position or entry.chain != expected or entry.recorded_at < recorded_at:
            return position
        chain, recorded_at = entry.chain, entry.recorded_at
    return None
