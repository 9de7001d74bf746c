"""`tenure projections list | rebuild | verify`: the read models, and whether they are right."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeAlias

import typer
from rich.progress import Progress as Bar
from rich.progress import TaskID
from rich.table import Table as Grid

from adapters.postgres import kept
from adapters.postgres.compare import count
from adapters.postgres.folding import head
from adapters.postgres.rebuild import Rebuild, Rebuilt, drop_previous
from adapters.postgres.store import connect
from adapters.postgres.verify import verify as verify_tables
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    Failed,
    console,
    database,
    progress_bar,
    say,
    say_json,
)
from projections.catalogue import BY_NAME, PROJECTIONS
from projections.rebuild import Kept, Progress, RebuildRefused, Role
from projections.table import Projection
from projections.verify import Difference

Name: TypeAlias = Annotated[str | None, typer.Argument(help="One projection.")]
All: TypeAlias = Annotated[bool, typer.Option("--all", help="All projections, in one pass.")]

projections = typer.Typer(help="Read models: list, rebuild, verify.", no_args_is_help=True)


@projections.command("list")
def list_projections(
    database_url: DatabaseUrl = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Each projection: its versions, its rows, a rebuild begun, previous tables kept."""
    with (
        database(database_url, data_dir) as dsn,
        connect(dsn) as connection,
        connection.transaction(),
    ):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        position, known = head(connection), kept.read(connection)
        told = [_described(it, known, position, count(connection, it.tables)) for it in PROJECTIONS]
    if as_json:
        say_json({"projections": told})
        return
    grid = Grid("projection", "version", "live version", "tables", "rows", "position", "rebuild")
    for it in told:
        begun, previous = it["rebuilt_to"], it["previous_kept_at"]
        notes = [] if begun is None else [f"begun, at {begun}"]
        notes += [] if previous is None else [f"previous kept, replaced at {previous}"]
        shown = (it["version"], it["live_version"], ", ".join(it["tables"]), it["rows"])
        grid.add_row(it["name"], *map(str, shown), str(it["position"]), "; ".join(notes))
    console().print(grid)


@projections.command()
def rebuild(
    name: Name = None,
    every: All = False,
    accept_differences: Annotated[
        bool, typer.Option(help="Switch even if the live tables are not what the log says.")
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop-previous", help="Only remove the tables kept by a rebuild.")
    ] = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild from the log beside the running service, compare, switch."""
    with database(database_url, data_dir) as dsn:
        wanted = _wanted(name, every)
        if drop:
            dropped = drop_previous(dsn, wanted)
            if as_json:
                say_json({"dropped": dropped})
            else:
                say(f"dropped the previous tables of: {', '.join(dropped) or 'none'}")
            return
        try:
            with progress_bar() as bar:
                shown = Shown(bar)
                rebuilt = Rebuild(
                    dsn, wanted, accept_differences=accept_differences, tell=shown.tell
                ).run()
        except RebuildRefused as error:
            raise Failed(str(error)) from error
    _show_rebuilt(rebuilt, as_json)


@projections.command()
def verify(
    name: Name = None,
    every: All = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Fold the log and compare it with the live tables; name the first row that differs."""
    with database(database_url, data_dir) as dsn:
        wanted = _wanted(name, every)
        _require_same_version(dsn, wanted)
        with progress_bar() as bar:
            found = verify_tables(dsn, wanted, tell=Shown(bar).tell)
        if as_json:
            say_json(
                {
                    "position": found.position,
                    "projections": found.projections,
                    "rows": found.rows,
                    "equal": not found.differences,
                    "differences": [_as_dict(it) for it in found.differences],
                }
            )
        if found.differences:
            raise Failed("; ".join(str(it) for it in found.differences))
        if not as_json:
            names = ", ".join(found.projections)
            say(f"{names}: {found.rows} rows equal the log at position {found.position}")


class Shown:
    """Shows progress in a bar."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task("folding", total=None, rate="")

    def tell(self, progress: Progress) -> None:
        self._bar.update(
            self._task,
            description=progress.phase,
            completed=progress.position,
            total=progress.target,
            rate=f"{progress.events_per_second:,.0f} events/s",
        )


def _wanted(name: str | None, every: bool) -> Sequence[Projection]:
    if (name is None) == (not every):
        raise Failed("give either the name of a projection or --all")
    if name is None:
        return PROJECTIONS
    if name not in BY_NAME:
        raise Failed(f"there is no projection {name}; there are: {', '.join(BY_NAME)}")
    return [BY_NAME[name]]


def _require_same_version(dsn: str, wanted: Sequence[Projection]) -> None:
    with connect(dsn) as connection:
        known = kept.read(connection)
    for it in wanted:
        live = kept.live_version(known, it.name)
        if live != it.version:
            raise Failed(f"{it.name} was written by version {live} of its fold: rebuild it")


def _described(
    projection: Projection, known: list[Kept], position: int, rows: int
) -> dict[str, Any]:
    def at(role: Role) -> int | None:
        own = (it.position for it in known if it.name == projection.name and it.role == role)
        return next(own, None)

    return {
        "name": projection.name,
        "version": projection.version,
        "live_version": kept.live_version(known, projection.name),
        "tables": [table.name for table in projection.tables],
        "rows": rows,
        "position": position,
        "rebuilt_to": at("rebuilt"),
        "switched_at": at("live"),
        "previous_kept_at": at("previous"),
    }


def _as_dict(difference: Difference) -> dict[str, Any]:
    return asdict(difference)


def _show_rebuilt(rebuilt: Rebuilt, as_json: bool) -> None:
    if as_json:
        told = asdict(rebuilt)
        told["differences"] = [_as_dict(it) for it in rebuilt.differences]
        say_json(told)
        return
    names, rate = ", ".join(rebuilt.projections), f"{rebuilt.events_per_second:,.0f} events/s"
    say(f"rebuilt {names} from the log up to position {rebuilt.position}, {rate}")
    if rebuilt.resumed_at:
        say(f"went on from position {rebuilt.resumed_at}")
    if not rebuilt.compared:
        say("the tables before were written by another version and were not compared")
    elif not rebuilt.differences:
        say("every row equals the live one; switched, the old tables are kept as previous_…")
    for difference in rebuilt.differences:
        say(f"accepted: {difference}")
