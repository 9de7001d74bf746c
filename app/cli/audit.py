"""`tenure audit`: what was true at a position, a time or a version, from the log alone."""

from pathlib import Path
from typing import Annotated

import orjson
import typer

from adapters.application import PostgresSnapshots, TenureLog
from adapters.audit import BrokenChain, HeadNotFound, take_snapshot
from adapters.mapper import EventMapper
from adapters.postgres.positions import position_at
from adapters.postgres.recorder import PostgresRecorder
from adapters.postgres.store import PostgresStore
from adapters.snapshots import write_assignment
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    Failed,
    database,
    progress_bar,
    say,
    say_json,
)
from app.cli.times import epoch_us, rfc3339
from domain.ids import HostId
from projections.audit.snapshot import AuditSnapshot

audit = typer.Typer(help="Show what was true, and prove it.", no_args_is_help=True)


@audit.command()
def snapshot(
    at: Annotated[int | None, typer.Option(min=0, help="A position of the log.")] = None,
    at_time: Annotated[
        str | None, typer.Option(help="RFC 3339 with its offset, or epoch milliseconds.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the document here.")] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Fold the log to a position into canonical JSON with its SHA-256; check its chain."""
    with database(database_url, data_dir) as dsn:
        if (at is None) == (at_time is None):
            raise Failed("give either --at POSITION or --at-time TIME")
        store = PostgresStore(dsn)
        try:
            until = _position(dsn, at, at_time)
            with progress_bar() as bar:
                task = bar.add_task("folding", total=until, rate="")
                taken = take_snapshot(
                    store, until, EventMapper(), lambda seen: bar.update(task, completed=seen)
                )
        except (BrokenChain, HeadNotFound) as error:
            raise Failed(str(error)) from error
        finally:
            store.close()
        if out is not None:
            try:
                out.write_bytes(taken.document)
            except OSError as error:
                raise Failed(f"{out} cannot be written: {error.strerror}") from error
    _show(taken, out, as_json)


@audit.command()
def host(
    user_id: str,
    relay_host_id: str,
    version: Annotated[
        int | None, typer.Option(min=1, help="Of the host's stream; default: the newest.")
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Fold one host's stream: where it was and what it held, at any version."""
    with database(database_url, data_dir) as dsn:
        recorder, snapshots = PostgresRecorder(dsn), PostgresSnapshots(dsn)
        with TenureLog(recorder, snapshots) as log:
            held = log.held(HostId(user_id, relay_host_id), version)
        if held is None:
            raise Failed("the log tells nothing of this host at this version")
    told = orjson.loads(write_assignment(held.assignment))
    if as_json:
        say_json({"stream": held.id, "version": held.version, **told})
        return
    say(f"{held.id} at version {held.version}")
    for name, value in told.items():
        say(f"  {name:<20}{orjson.dumps(value).decode()}")


def _position(dsn: str, at: int | None, at_time: str | None) -> int:
    if at_time is None:
        assert at is not None
        return at
    try:
        return position_at(dsn, epoch_us(at_time))
    except (ValueError, OverflowError) as error:
        raise Failed(f"--at-time: {error}") from error


def _show(taken: AuditSnapshot, out: Path | None, as_json: bool) -> None:
    """Without a file the document is the answer, and what is said about it goes to stderr."""
    head = {
        "sha256": taken.sha256,
        "position": taken.position,
        "chain": taken.chain,
        "recorded_at": rfc3339(taken.recorded_at),
        "chain_checked": True,
    }
    if as_json:
        say_json({**head, "document": taken.document.decode() if out is None else str(out)})
        return
    if out is None:
        say(taken.document.decode())
    beside = out is None
    typer.echo(f"sha256 {taken.sha256}", err=beside)
    typer.echo(f"head   {taken.position}:{taken.chain}", err=beside)
    typer.echo(f"the chain of {taken.position} entries was recomputed and is intact", err=beside)
