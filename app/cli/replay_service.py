"""A service of its own for a replay: an empty database, a virtual clock, a free loopback port."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn

from adapters.clock import RandomIds, VirtualClock
from adapters.postgres import migrate, tokens
from adapters.postgres.server import Server, create_database, drop_database
from app.bootstrap import Service, build
from app.cli.database import Failed
from app.http.app import create_app
from app.settings import Settings
from app.tokens import token_hash
from domain.limits import HEARTBEAT_TTL_MS
from domain.relay.policy import Policy

START_SECONDS_MAX = 30.0
REQUEST_SECONDS_MAX = 30.0


class _Listening(uvicorn.Server):
    """A server that says when it listens, or that it never will."""

    def __init__(self, service: Service) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(service), host="127.0.0.1", port=0, log_config=None, access_log=False
            )
        )
        self.decided = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.decided.set()

    @property
    def port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])


@contextmanager
def throw_away_service(
    server: Server, data_dir: Path, config: dict[str, Any], start: int
) -> Iterator[httpx.Client]:
    """An operator's client of a service that is gone, with its database, afterwards."""
    name = f"tenure_replay_{secrets.token_hex(6)}"
    dsn = create_database(server, name)
    try:
        secret = _prepared(dsn, start)
        settings = Settings(
            database_url=dsn,
            data_dir=data_dir,
            allow_unsafe_durability=True,
            host="127.0.0.1",
            port=0,
            clock="virtual",
            sweeps=False,
        )
        service = build(settings, clock=VirtualClock(start), ids=RandomIds())
        # Not by settings: recordings go beyond what an operator may set.
        service.policy = Policy(
            require_live_cells=config.get("requireLiveCells", False),
            heartbeat_ttl_ms=config.get("heartbeatTtlMs", HEARTBEAT_TTL_MS),
            regional_rehome_cohort_percent=config.get("regionalRehomeCohortPercent", 0),
        )
        with _running(service) as url, httpx.Client(base_url=url) as client:
            client.timeout = httpx.Timeout(REQUEST_SECONDS_MAX)
            client.headers["Authorization"] = f"Bearer {secret}"
            yield client
    finally:
        drop_database(server, name)


def _prepared(dsn: str, now: int) -> str:
    """Migrate; answers an operator's token."""
    secret = secrets.token_urlsafe()
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate.apply(connection)
        stored = [token_hash(secret), "replay", "operator", None, now]
        connection.execute(tokens.CREATE.encode(), stored)
    return secret


@contextmanager
def _running(service: Service) -> Iterator[str]:
    server = _Listening(service)
    thread = threading.Thread(target=_run, args=[server], name="replay-service", daemon=True)
    thread.start()
    try:
        if not server.decided.wait(START_SECONDS_MAX) or not server.started:
            raise Failed(f"the service did not start: {service.failure}")
        yield f"http://127.0.0.1:{server.port}"
    finally:
        service.leave()
        server.should_exit = True
        thread.join(START_SECONDS_MAX)


def _run(server: _Listening) -> None:
    try:
        server.run()
    finally:
        server.decided.set()
