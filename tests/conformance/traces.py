"""Reading the recorded traces: a header, steps, and the whole state now and then."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "relay"


@dataclass(frozen=True)
class Trace:
    """One recorded run. `lines` holds the steps and states in order."""

    path: Path
    name: str
    config: dict[str, Any]
    start: int
    lines: list[dict[str, Any]]

    @property
    def steps(self) -> int:
        return sum("op" in line for line in self.lines)


def read_trace(path: Path) -> Trace:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        header, *lines = [json.loads(line) for line in file]
    return Trace(path, header["trace"], header["config"], header["start"], lines)


def find_traces(folders: list[Path]) -> Iterator[Trace]:
    """The traces of the folders (or files), in order of their names."""
    for folder in folders:
        paths = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl*"))
        for path in paths:
            yield read_trace(path)
