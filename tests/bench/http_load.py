"""HTTP load from a process of its own: `python -m tests.bench.http_load '{…}'`.

Keeps connections busy with requests for new hosts and prints the rate as JSON. It speaks just
enough HTTP/1.1 to cost little beside the service on the same cores.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import orjson
import uvloop

from tests.bench.load import Rate

HEADER_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Plan:
    """What to ask, of which ports in turn, with how many connections, for how long."""

    ports: list[int]
    path: str
    token: str
    connections: int
    seconds: float
    prefix: str
    batch: int = 0
    """How many commands a request carries; none: it is one itself."""

    def request(self, host: str) -> bytes:
        path, body = self.path.format(host=host), b"{}"
        if self.batch:
            path, body = "/v1/commands", self._batch(host)
        return (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"authorization: Bearer {self.token}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body

    def _batch(self, host: str) -> bytes:
        paths = [
            {"user_id": "user", "relay_host_id": f"{host}-{it:03}"} for it in range(self.batch)
        ]
        commands = [{"operation": "Assign", "path": path, "body": {}} for path in paths]
        return orjson.dumps({"commands": commands})

    def answered(self, head: bytes, body: bytes) -> bool:
        """Whether the answer is a success, for each command of a batch."""
        succeeded = head.startswith(b"HTTP/1.1 200")
        return succeeded and body.count(b'"status":200') == self.batch


class Connection(asyncio.Protocol):
    """One request after the other."""

    def __init__(self, plan: Plan, name: str, end: float, latencies: list[float]) -> None:
        self.plan, self.name, self.end, self.latencies = plan, name, end, latencies
        self.number, self.started, self.received = 0, 0.0, b""
        self.failed = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.started = time.perf_counter()
        if self.started >= self.end:
            self.transport.close()
            return
        self.number += 1
        self.transport.write(self.plan.request(f"{self.name}-{self.number:06}"))

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(HEADER_END)
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.latencies.append(time.perf_counter() - self.started)
        self.failed += not self.plan.answered(head, body)
        self.received = body[length:]
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(plan: Plan) -> dict[str, Any]:
    loop, latencies = asyncio.get_running_loop(), list[float]()
    started = time.perf_counter()
    connections = []
    for number in range(plan.connections):
        name = f"{plan.prefix}-{number:03}"
        connection = Connection(plan, name, started + plan.seconds, latencies)
        port = plan.ports[number % len(plan.ports)]
        await loop.create_connection(partial(_same, connection), "127.0.0.1", port)
        connections.append(connection)
    await asyncio.gather(*(it.done for it in connections))
    rate = Rate.of(latencies, time.perf_counter() - started)
    return {"failed": sum(it.failed for it in connections), **asdict(rate)}


def _same(connection: Connection) -> Connection:
    return connection


if __name__ == "__main__":
    print(json.dumps(uvloop.run(load(Plan(**json.loads(sys.argv[1]))))))
