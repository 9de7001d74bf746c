"""Running the program in this process, and reading what it says."""

from dataclasses import dataclass
from typing import Any

import orjson
from typer.testing import CliRunner

from app.cli.main import cli


@dataclass(frozen=True)
class Said:
    """What a command wrote, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """The one JSON document on stdout."""
        return orjson.loads(self.out)


def tenure(*words: str, dsn: str | None = None) -> Said:
    """Run the program; an error that it does not tell in its own words fails the test."""
    more = [] if dsn is None else ["--database-url", dsn]
    result = CliRunner().invoke(cli, [*words, *more])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)
