"""`tenure serve`: run the service until it is told to end."""

import shlex
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from pydantic import ValidationError

from adapters.clock import Clock, RandomIds, SystemClock, VirtualClock
from adapters.postgres.migrate import MigrationMismatch
from adapters.postgres.server import ServerUnavailable
from app import logs
from app import tokens as token_store
from app.bootstrap import Service, build
from app.collector import collect_rarely
from app.http.app import create_app
from app.processor import own_processor
from app.settings import Settings

GRACEFUL_SECONDS_MAX = 5
CONNECTIONS_WAITING_MAX = 2_048
PROGRAM = ".venv/bin/tenure"
RECORDED_RUN = "tests/vectors/relay/dir-10-headroom.jsonl"


def clock_of(settings: Settings) -> Clock:
    """The clock that the settings ask for."""
    return VirtualClock() if settings.clock == "virtual" else SystemClock()


class Announced(uvicorn.Server):
    """A server that says where it listens, and tells its service first when it is to end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._held = ExitStack()

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        await super().startup(list(sockets) if sockets else None)
        if self.started:
            if self._service.settings.own_processor:
                # Only now: an embedded PostgreSQL that was started before keeps all of them.
                self._held.enter_context(own_processor(self._service.settings.data_dir))
            await self._announce()

    async def shutdown(self, sockets: Sequence[socket.socket] | None = None) -> None:
        self._service.leave()
        self._held.close()
        await super().shutdown(list(sockets) if sockets else None)

    async def _announce(self) -> None:
        service = self._service
        settings = service.settings
        if settings.loopback:
            path, is_new = await token_store.local(
                service.reads, settings.data_dir, clock=service.clock, ids=service.ids
            )
            typer.echo(f"operator token: {path}{' (new)' if is_new else ''}")
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        documentation = f"http://{host}:{self._port()}/docs"
        typer.echo(f"documentation:  {documentation}")
        if sys.stdout.isatty():
            typer.echo(next_steps(settings, documentation))

    def _port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])


def next_steps(settings: Settings, documentation: str) -> str:
    """What somebody who started the service for the first time may try."""
    where = ""
    if settings.data_dir != Settings.model_fields["data_dir"].default:
        where = f" --data-dir {shlex.quote(str(settings.data_dir))}"
    if settings.database_url is not None:
        where += f" --url {documentation.removesuffix('/docs')}"  # the database's has a password
    steps = {
        f"{PROGRAM} replay {RECORDED_RUN}": "replay a recorded run",
        f"{PROGRAM} cells{where}": "list the cells",
        documentation: "read about every request",
    }
    width = max(map(len, steps))
    lines = [f"  {step:<{width}}  {why}" for step, why in steps.items()]
    return "\n".join(["ready; try next, in a second terminal:", *lines])


def server_of(service: Service) -> Announced:
    """The HTTP server of a service: one process, one event loop."""
    settings = service.settings
    config = uvicorn.Config(
        create_app(service),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=CONNECTIONS_WAITING_MAX,
        timeout_graceful_shutdown=GRACEFUL_SECONDS_MAX,
    )
    return Announced(config, service)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    database_url: Annotated[
        str | None, typer.Option(help="PostgreSQL to use instead of the embedded one.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where local files live.")] = None,
    clock: Annotated[str | None, typer.Option(help="system, or virtual for trials.")] = None,
    sweeps: Annotated[bool | None, typer.Option(help="Sweep at intervals.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, json or console.")] = None,
) -> None:
    """Run the HTTP service. Options win over TENURE_… variables."""
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "database_url": database_url,
        "data_dir": data_dir,
        "clock": clock,
        "sweeps": sweeps,
        "log_level": log_level,
        "log_format": log_format,
    }
    settings = _settings({name: it for name, it in options.items() if it is not None})
    logs.configure(settings.log_level, settings.log_format)
    service = build(settings, clock=clock_of(settings), ids=RandomIds())
    server = server_of(service)
    collect_rarely()
    try:
        server.run()
    finally:
        if isinstance(service.failure, ServerUnavailable | MigrationMismatch):
            typer.echo(f"cannot start: {service.failure}", err=True)


def _settings(options: dict[str, Any]) -> Settings:
    """Options over variables; a value out of bounds is said by the setting's name."""
    try:
        return Settings(**options)
    except ValidationError as error:
        for it in error.errors(include_url=False, include_input=False):
            typer.echo(f"{it['loc'][0]}: {it['msg']}", err=True)
        raise typer.Exit(2) from None
