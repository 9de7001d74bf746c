"""`tenure token create | list | revoke`: who may ask the service for what."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar, get_args

import typer
from rich.table import Table as Grid

from adapters.clock import RandomIds, SystemClock
from adapters.postgres.reads import Reads
from adapters.postgres.token_list import ListedToken, listed_tokens
from adapters.postgres.tokens import BOUND_ROLES, Role
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    Failed,
    console,
    database,
    say,
    say_json,
)
from app.cli.times import rfc3339
from app.tokens import CACHE_SECONDS_MAX, STREAM_OUTLIVES_SECONDS_MAX
from app.tokens import create as create_token

BOUND_TO_LENGTH_MAX = 512
T = TypeVar("T")

token = typer.Typer(help="Bearer tokens: only hashes are stored.", no_args_is_help=True)


@token.command()
def create(
    role: Annotated[str, typer.Option(help=", ".join(get_args(Role)))],
    bound_to: Annotated[
        str | None, typer.Option(help="client: USER/HOST; cell: its id; others: nothing.")
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once."""
    with database(database_url, data_dir) as dsn:
        known = _role(role)
        _require_binding(known, bound_to)

        async def store(reads: Reads) -> Any:
            clock, ids = SystemClock(), RandomIds()
            return await create_token(reads, known, bound_to, clock=clock, ids=ids)

        secret, stored = _with_reads(dsn, store)
    if as_json:
        told = {"token": secret, "token_id": stored.token_id, "role": known}
        say_json({**told, "bound_to": bound_to})
        return
    say(secret)
    typer.echo(f"token {stored.token_id}: this is the only time it is shown", err=True)


@token.command("list")
def list_tokens(
    database_url: DatabaseUrl = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """All tokens, without the tokens."""
    with database(database_url, data_dir) as dsn:
        found = [_told(it) for it in listed_tokens(dsn)]
    if as_json:
        say_json({"tokens": found})
        return
    grid = Grid("token id", "role", "bound to", "created", "revoked")
    for it in found:
        grid.add_row(*(it[name] or "" for name in it))
    console().print(grid)


@token.command()
def revoke(
    token_id: str,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """End a token; says how long services may still accept it."""
    with database(database_url, data_dir) as dsn:

        async def end(reads: Reads) -> bool:
            return await reads.revoke_token(token_id, SystemClock().now_ms())

        if not _with_reads(dsn, end):
            raise Failed(f"there is no token {token_id} in use")
    if as_json:
        bounds = {
            "accepted_for_seconds_max": CACHE_SECONDS_MAX,
            "streams_for_seconds_max": STREAM_OUTLIVES_SECONDS_MAX,
        }
        say_json({"revoked": token_id, **bounds})
        return
    say(f"revoked {token_id}")
    say(
        f"services may accept it for {CACHE_SECONDS_MAX:.0f} more seconds; "
        f"open log streams end within {STREAM_OUTLIVES_SECONDS_MAX:.0f}"
    )


def _role(text: str) -> Role:
    roles: dict[str, Role] = {role: role for role in get_args(Role)}
    if text not in roles:
        raise Failed(f"there is no role {text}; there are: {', '.join(roles)}")
    return roles[text]


def _require_binding(role: Role, bound_to: str | None) -> None:
    if role not in BOUND_ROLES:
        if bound_to is not None:
            raise Failed(f"a token for {role} is bound to nothing")
        return
    if not bound_to or len(bound_to) > BOUND_TO_LENGTH_MAX:
        raise Failed(f"a token for a {role} needs --bound-to")
    if role == "client" and not all(bound_to.partition("/")):
        raise Failed("a client is bound to USER/HOST")


def _with_reads(dsn: str, act: Callable[[Reads], Awaitable[T]]) -> T:
    async def run() -> T:
        reads = Reads(dsn, 1)
        await reads.open()
        try:
            return await act(reads)
        finally:
            await reads.close()

    return asyncio.run(run())


def _told(listed: ListedToken) -> dict[str, str | None]:
    revoked = listed.revoked_at
    return {
        "token_id": listed.token_id,
        "role": listed.role,
        "bound_to": listed.bound_to,
        "created_at": rfc3339(listed.created_at * 1_000),
        "revoked_at": None if revoked is None else rfc3339(revoked * 1_000),
    }
