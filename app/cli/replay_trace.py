"""Recorded traces: a header, steps, and states that a replay over HTTP does not look at."""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson


class UnreadableTrace(Exception):
    """The file is not a recorded trace."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded run; `steps` are the lines with an operation."""

    path: Path
    name: str
    config: dict[str, Any]
    start: int
    """Epoch ms."""
    steps: list[dict[str, Any]]


def traces_of(paths: list[Path]) -> list[Path]:
    """The files named, and the traces in the folders named, in order of their names."""
    found: list[Path] = []
    for path in paths:
        found.extend(sorted(path.glob("*.jsonl*")) if path.is_dir() else [path])
    return found


def read_trace(path: Path) -> Trace:
    """Read a .jsonl or .jsonl.gz file. Raises `UnreadableTrace`."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        header, *lines = [orjson.loads(line) for line in content.splitlines()]
        steps = [line for line in lines if "op" in line]
        return Trace(path, header["trace"], header["config"], header["start"], steps)
    except OSError as error:
        reason = error.strerror or "it is no gzip file"
        raise UnreadableTrace(f"{path} cannot be read: {reason}") from error
    except (EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise UnreadableTrace(f"{path} is not a recorded trace: {error}") from error
