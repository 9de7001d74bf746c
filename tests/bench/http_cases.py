"""Placing new hosts over HTTP, beside a bare handler on the same stack."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.bench.load import RUNS, Rate, fleet
from tests.bench.result import Case
from tests.crash.service import RUN, START_SECONDS_MAX, free_port, until_answers

CONNECTIONS = 64
BATCH, BATCHING = 64, 2
"""Commands in a batch, and connections that send batches."""
SECONDS = 4.0
WARM_UP_SECONDS = 1.0
PATH = "/v1/hosts/user/{host}/assignment"


def http_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    """One process, then two on one database."""
    with bare() as port:
        plain = measure([port], "none")
    yield Case("bare handler waiting 1.2 ms, 64 connections", plain)
    for processes in (1, 2):
        with services(new_database(), processes) as (ports, token):
            rate = measure(ports, token)
            batches = measure(ports, token, BATCH) if processes == 1 else None
        ratio = rate.per_second / plain.per_second
        if processes == 1:
            yield Case(
                "HTTP assign, 1 process, 64 connections",
                rate,
                ratio,
                per_second_min=2_000,
                p99_ms_max=60,
                ratio_min=0.45,
            )
            assert batches is not None
            per_second = batches.per_second * BATCH
            rate = Rate(per_second, batches.p50_ms, batches.p99_ms)
            yield Case(f"HTTP assign in batches of {BATCH}, {BATCHING} connections", rate)
        else:
            yield Case("HTTP assign, 2 processes on one database", rate, ratio)


@contextmanager
def bare() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.bare", str(port)])
    try:
        until_answers(f"http://127.0.0.1:{port}/docs", START_SECONDS_MAX)
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def services(dsn: str, processes: int) -> Iterator[tuple[list[int], str]]:
    """So many services on the database, with the bench's fleet."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = []
        for _ in range(processes):
            port = free_port()
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    RUN,
                    "serve",
                    "--port",
                    str(port),
                    "--database-url",
                    dsn,
                    "--data-dir",
                    folder,
                    "--no-sweeps",
                    "--log-level",
                    "warning",
                ],
                env={**os.environ, "TENURE_REQUIRE_LIVE_CELLS": "false"},
                stdout=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            until_answers(f"http://127.0.0.1:{port}/readyz", START_SECONDS_MAX)
            ports.append(port)
        token = (Path(folder) / "token").read_text().strip()
        cells = [
            {
                "cell_id": it.cell_id,
                "cell_url": it.cell_url,
                "capacity_units": it.capacity_units,
                "region": it.region,
            }
            for it in fleet().cells
        ]
        answer = httpx.put(
            f"http://127.0.0.1:{ports[0]}/v1/cells",
            json={"cells": cells, "disable_missing": True},
            headers={"authorization": f"Bearer {token}"},
        )
        assert answer.is_success, answer.text
        yield ports, token


def measure(ports: list[int], token: str, batch: int = 0) -> Rate:
    run(ports, token, WARM_UP_SECONDS, f"warm-up-{batch}", batch)
    return Rate.median([run(ports, token, SECONDS, f"run-{batch}-{n}", batch) for n in range(RUNS)])


def run(ports: list[int], token: str, seconds: float, prefix: str, batch: int) -> Rate:
    """One burst of load from another process."""
    plan = {
        "ports": ports,
        "path": PATH,
        "token": token,
        "connections": BATCHING if batch else CONNECTIONS,
        "seconds": seconds,
        "prefix": prefix,
        "batch": batch,
    }
    command = [sys.executable, "-m", "tests.bench.http_load", json.dumps(plan)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert told.pop("failed") == 0
    return Rate(**told)
