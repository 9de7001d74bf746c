"""What every command of the terminal shares: the database it means, how it answers and fails."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

import orjson
import psycopg
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from adapters.mapper import UnreadableEvent
from adapters.ports import Unavailable
from adapters.postgres import migrate
from adapters.postgres.migrate import MigrationMismatch
from adapters.postgres.server import Server, ServerUnavailable, open_server
from app.settings import Settings

DatabaseUrl: TypeAlias = Annotated[
    str | None, typer.Option(help="PostgreSQL to use instead of the embedded one.")
]
DataDir: TypeAlias = Annotated[Path | None, typer.Option(help="Where local files live.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Answer in JSON on stdout.")]

FAILED = 1
PIPED_COLUMNS = 160


class Failed(Exception):
    """An expected failure, told on stderr in one line."""


def say(text: str) -> None:
    """A line for people on stdout."""
    typer.echo(text)


def say_json(value: Any) -> None:
    """The answer for programs: one JSON document, or a line of it, on stdout."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def fail(reason: str) -> NoReturn:
    """End with exit status 1 and the reason on stderr."""
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(FAILED)


def console() -> Console:
    """Tables on stdout; into a file or a pipe they are not squeezed."""
    return Console() if sys.stdout.isatty() else Console(width=PIPED_COLUMNS)


def progress_bar() -> Progress:
    """A bar on stderr with what is left, shown only to people."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


@contextmanager
def failures_told() -> Iterator[None]:
    """Turn what may be expected to go wrong into one line on stderr and exit status 1."""
    try:
        yield
    except (Failed, ServerUnavailable, MigrationMismatch) as error:
        fail(str(error))
    except UnreadableEvent as error:
        fail(f"the log holds an event that this code cannot read: {error}")
    except ValidationError as error:
        fail("; ".join(f"{it['loc'][0]}: {it['msg']}" for it in error.errors()))
    except (Unavailable, psycopg.Error) as error:
        fail(f"the database does not answer as it should: {type(error).__name__}: {error}")


def settings_of(database_url: str | None, data_dir: Path | None, **more: Any) -> Settings:
    """The settings of the environment, and of the options given. Raises `ValidationError`."""
    options = {"database_url": database_url, "data_dir": data_dir, **more}
    return Settings(**{name: value for name, value in options.items() if value is not None})


@contextmanager
def opened(settings: Settings) -> Iterator[Server]:
    """The server, shared with a service that runs on the same data folder."""
    unsafe = settings.allow_unsafe_durability
    with open_server(settings.database_url, settings.data_dir, allow_unsafe=unsafe) as server:
        yield server


@contextmanager
def database(database_url: str | None, data_dir: Path | None) -> Iterator[str]:
    """The DSN of a migrated database; expected failures are told."""
    with failures_told(), opened(settings_of(database_url, data_dir)) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            pending = migrate.plan(connection)
        if pending:
            raise Failed(f"{len(pending)} migrations are pending: run `tenure migrate`")
        yield server.dsn
