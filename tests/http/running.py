"""A service that runs in a thread, and clients that talk to it as somebody."""

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any, TypeVar

import httpx
import psycopg

from adapters.clock import CountedIds, VirtualClock
from adapters.postgres import tokens
from adapters.postgres.tokens import Role
from app.bootstrap import Service, build
from app.cli.serve import Announced, server_of
from app.http.app import create_app
from app.settings import Settings
from app.tokens import token_hash

NOW = 1_754_000_000_000
START_SECONDS_MAX = 20.0
CELL_URL = "https://{}.example"

T = TypeVar("T")
_NUMBERS = itertools.count(1)


class Watched(Announced):
    """A server that tells another thread when it listens."""

    def watch(self) -> threading.Event:
        self.listening = threading.Event()
        self.loop: asyncio.AbstractEventLoop
        return self.listening

    async def startup(self, sockets: Sequence[socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.listening.set()


class Running:
    """A running service: its address, its clock, its tokens, and the usual first steps."""

    def __init__(
        self, service: Service, clock: VirtualClock, dsn: str, url: str, server: Watched
    ) -> None:
        self.service = service
        self.loop = server.loop
        self._server = server
        self.clock = clock
        self.dsn = dsn
        self.url = url
        self._clients: list[httpx.Client] = []
        self.operator = self.client("operator")

    def token(self, role: Role, bound_to: str | None = None) -> tuple[str, str]:
        """A new token of a role, and its id."""
        token = f"token-{next(_NUMBERS)}"
        stored = (token_hash(token), f"id-of-{token}", role, bound_to, NOW)
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(tokens.CREATE.encode(), stored)
        return token, f"id-of-{token}"

    def client(self, role: Role | None, bound_to: str | None = None) -> httpx.Client:
        """A client with a new token of a role, or without any."""
        headers = {}
        if role is not None:
            headers["Authorization"] = f"Bearer {self.token(role, bound_to)[0]}"
        client = httpx.Client(base_url=self.url, headers=headers, timeout=20.0)
        self._clients.append(client)
        return client

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the service's event loop."""
        return asyncio.run_coroutine_threadsafe(scenario, self.loop).result(START_SECONDS_MAX)

    def leave(self) -> None:
        """Ask the server to end, as a signal would."""
        self._server.should_exit = True

    def close(self) -> None:
        for client in self._clients:
            client.close()

    # the usual first steps

    def configure(self, cell_id: str = "c-1", **settings: Any) -> None:
        """A cell that takes hosts; `settings` change what it is configured with."""
        body = {"cell_url": CELL_URL.format(cell_id), "capacity_units": 100, "admission": "general"}
        done = self.operator.put(f"/v1/cells/{cell_id}", json={**body, **settings})
        assert done.status_code == 204, done.text

    def beat(self, cell_id: str = "c-1", **told: Any) -> httpx.Response:
        """A heartbeat of a cell's only incarnation."""
        return self.operator.post(
            f"/v1/cells/{cell_id}/heartbeats", json={**heartbeat(cell_id), **told}
        )

    def live_cell(self, cell_id: str = "c-1", **settings: Any) -> None:
        self.configure(cell_id, **settings)
        assert self.beat(cell_id).status_code == 204

    def assign(self, host: str = "u/h", **wanted: Any) -> httpx.Response:
        return self.operator.post(f"/v1/hosts/{host}/assignment", json=wanted)

    def post(self, path: str, **body: Any) -> httpx.Response:
        """A command about the usual host."""
        return self.operator.post(f"/v1/hosts/u/h/{path}", json=body)

    def head(self) -> int:
        return int(self.operator.get("/v1/log/head").json()["position"])


def heartbeat(cell_id: str = "c-1") -> dict[str, Any]:
    return {
        "cell_url": CELL_URL.format(cell_id),
        "cell_incarnation": f"{cell_id}-boot",
        "started_at": NOW - 1_000,
        "ready": True,
        "observed_requests": 0,
    }


@contextmanager
def running(dsn: str, data_dir: Path, **settings: Any) -> Iterator[Running]:
    """A service on this database, listening on a free port."""
    defaults = {
        "database_url": dsn,
        "data_dir": data_dir,
        "port": 0,
        "clock": "virtual",
        "sweeps": False,
        "allow_unsafe_durability": True,
    }
    clock = VirtualClock(NOW)
    service = build(Settings(**{**defaults, **settings}), clock=clock, ids=CountedIds())
    server = Watched(server_of(service).config, service)
    listening = server.watch()
    thread = threading.Thread(target=server.run, name="http-server")
    thread.start()
    assert listening.wait(START_SECONDS_MAX)
    assert server.started, service.failure
    port = server.servers[0].sockets[0].getsockname()[1]
    it = Running(service, clock, dsn, f"http://127.0.0.1:{port}", server)
    try:
        yield it
    finally:
        it.close()
        it.leave()
        thread.join(START_SECONDS_MAX)
        assert not thread.is_alive()


def described() -> dict[str, Any]:
    """The OpenAPI document with every route in it."""
    settings = Settings(clock="virtual")
    app = create_app(build(settings, clock=VirtualClock(), ids=CountedIds()))
    return app.openapi()
