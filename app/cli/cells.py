"""`tenure cells`: the fleet as a table, from a service or straight from the database."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

import httpx
import orjson
import typer
from rich.table import Table as Grid

from adapters.clock import SystemClock
from adapters.postgres.reads import Reads
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    Failed,
    console,
    database,
    failures_told,
    say_json,
    settings_of,
)
from app.cli.times import clock_time
from app.http.relay.cell_answers import row_of
from app.settings import Settings

REQUEST_SECONDS_MAX = 10.0
TOKEN_VARIABLE = "TENURE_TOKEN"


def cells(
    url: Annotated[
        str | None, typer.Option(help="Ask this service; without it, read the database.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help=f"Default: ${TOKEN_VARIABLE}, or the local token.")
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Each cell: load, reserved and leased units, headroom, state."""
    if url is not None:
        with failures_told():
            found = _asked(url, _token(token_file, settings_of(database_url, data_dir)))
    else:
        with database(database_url, data_dir) as dsn:
            found = asyncio.run(_read(dsn, settings_of(database_url, data_dir)))
    if as_json:
        say_json({"cells": found})
    else:
        console().print(fleet_table(found))


def fleet_table(rows: list[dict[str, Any]]) -> Grid:
    """The rows of `GET /v1/cells` as a table for people."""
    grid = Grid()
    for name in ("cell", "region", "admission"):
        grid.add_column(name, overflow="fold")
    for name in ("load", "reserved / capacity", "leased"):
        grid.add_column(name, justify="right")
    grid.add_column("headroom")
    grid.add_column("state")
    for row in rows:
        reserved, capacity = row["reserved_units"], row["capacity_units"]
        grid.add_row(
            row["cell_id"],
            row["region"],
            row["admission"],
            f"{reserved / capacity:.0%}",
            f"{reserved} / {capacity}",
            str(row["leased_units"]),
            "yes" if row["headroom"] else "no",
            state_of(row),
        )
    return grid


def state_of(row: dict[str, Any]) -> str:
    """The cell's standing in words, and since when where that is known."""
    word, since = row["standing"].replace("_", " "), row["standing_since"]
    if since is not None:
        return f"{word} since {clock_time(since, SystemClock().now_ms())}"
    return "silent, never heard of" if word == "silent" else word


async def _read(dsn: str, settings: Settings) -> list[dict[str, Any]]:
    reads = Reads(dsn, 1)
    await reads.open()
    try:
        found = await reads.views()
    finally:
        await reads.close()
    now = SystemClock().now_ms()
    rows = [row_of(it, now, settings.policy) for it in found.value]
    listed: list[dict[str, Any]] = orjson.loads(orjson.dumps(rows))
    return listed


def _token(token_file: Path | None, settings: Settings) -> str:
    given = os.environ.get(TOKEN_VARIABLE)
    if token_file is None and given:
        return given
    path = token_file or settings.data_dir / "token"
    try:
        return path.read_text().strip()
    except OSError as error:
        raise Failed(f"the token file {path} cannot be read: {error.strerror}") from error


def _asked(url: str, token: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/v1/cells", headers=headers, timeout=REQUEST_SECONDS_MAX
        )
        told: dict[str, Any] = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise Failed(f"{url} does not answer: {type(error).__name__}: {error}") from error
    if answer.status_code != httpx.codes.OK:
        raise Failed(f"{url} says: {told.get('title', answer.status_code)} ({told.get('code')})")
    found: list[dict[str, Any]] = told["cells"]
    return found
