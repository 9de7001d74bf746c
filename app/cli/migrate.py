"""`tenure migrate`: bring the schema up to date, or show what that would do."""

from dataclasses import asdict
from typing import Annotated

import psycopg
import typer

from adapters.postgres import migrate as runner
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    failures_told,
    opened,
    say,
    say_json,
    settings_of,
)


def migrate(
    dry_run: Annotated[bool, typer.Option(help="Show the SQL, change nothing.")] = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Apply the migrations that are pending."""
    with (
        failures_told(),
        opened(settings_of(database_url, data_dir)) as server,
        psycopg.connect(server.dsn, autocommit=True) as connection,
    ):
        act = runner.plan if dry_run else runner.apply
        found = act(connection)
    verb = "pending" if dry_run else "applied"
    if as_json:
        say_json({verb: [asdict(it) for it in found]})
        return
    for it in found:
        say(f"{verb}: {it.number:03} {it.name} ({it.checksum[:12]})")
        if dry_run:
            say(it.statements)
    if not found:
        say("nothing is pending")
