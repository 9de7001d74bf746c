"""A service in a process of its own, and clients that remember what they were told."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

import httpx

RUN = "from app.cli.main import main; main()"
START_SECONDS_MAX = 60
WRITES_AGAIN_SECONDS_MAX = 5
CELL = "cell-a"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class RunningService:
    """`tenure serve` on the embedded server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process = self._start()

    def __enter__(self) -> "RunningService":
        self.until_ready(START_SECONDS_MAX)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(START_SECONDS_MAX)

    def _start(self) -> "subprocess.Popen[bytes]":
        options = ["--port", str(self.port), "--data-dir", str(self.folder), "--no-sweeps"]
        environment = {**os.environ, "TENURE_REQUIRE_LIVE_CELLS": "false"}
        environment.pop("TENURE_DATABASE_URL", None)
        return subprocess.Popen(
            [sys.executable, "-c", RUN, "serve", *options],
            env=environment,
            stdout=subprocess.DEVNULL,
        )

    def kill_and_restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = self._start()

    def client(self) -> httpx.Client:
        token = (self.folder / "token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=30)

    def until_ready(self, seconds: float) -> None:
        """Wait until the service says it is ready."""
        until_answers(f"http://127.0.0.1:{self.port}/readyz", seconds)


def until_answers(url: str, seconds: float) -> None:
    """Wait until this URL answers with success."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, f"{url} did not answer in time"


class Clients(threading.Thread):
    """Place new hosts, one after the other, each under a key of its own."""

    def __init__(self, service: RunningService, name: str) -> None:
        super().__init__(daemon=True)
        self.service = service
        self.name = name
        self.enough = threading.Event()
        self.placed: dict[str, int] = {}
        """Hosts whose placement was acknowledged, with their epoch."""
        self.unanswered: str | None = None
        """The host that has no answer yet; it is asked for again under the same key."""

    def run(self) -> None:
        number = 0
        with self.service.client() as client:
            while not self.enough.is_set():
                number += 1
                self.unanswered = self.unanswered or f"{self.name}-{number:05}"
                self.place(client, self.unanswered)

    def place(self, client: httpx.Client, host: str) -> None:
        """Ask for a place; an answer other than success counts as none."""
        try:
            answer = client.post(
                f"/v1/hosts/user/{host}/assignment", json={}, headers={"idempotency-key": host}
            )
        except httpx.TransportError:
            return
        if answer.status_code == 200:
            self.placed[host] = answer.json()["epoch"]
            self.unanswered = None
