"""Placing new hosts over HTTP, beside a bare handler on the same stack."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import httpx

from domain.limits import CELL_CAPACITY_UNITS_MAX
from tests.bench.load import SECONDS, Bench, Rate, fleet, interleaved, placing, ratio
from tests.bench.result import Bar, Case
from tests.crash.service import RUN, START_SECONDS_MAX, free_port, until_answers

CONNECTIONS = 64
BATCH, BATCHING = 64, 2
"""Commands in a batch, and connections that send batches."""
PATH = "/v1/hosts/user/{host}/assignment"

_prefixes = count()


def http_cases(new_database: Callable[[], str]) -> Iterator[Case]:
    """One process beside the bare handler and beside the writer alone, then two processes."""
    bench, place = Bench(new_database()), placing(count())
    with bare() as bare_port, services(new_database(), 1) as (ports, token):
        measures = (
            partial(run, [bare_port], "none"),
            partial(run, ports, token),
            partial(bench.measure, 64, place),
            partial(run, ports, token, BATCH),
        )
        for measure in measures:
            measure()
        plain, single, placed, batched = interleaved(*measures)
    bench.close()
    yield Case("bare handler waiting 1.2 ms, 64 connections", Rate.median(plain))
    bar = Bar("of the bare handler", ratio(single, plain), at_least=0.45)
    yield Case("HTTP assign, 64 connections", Rate.median(single), (bar,))
    yield Case("place in process, 64 submitters", Rate.median(placed))
    bar = Bar("of that in process", ratio(batched, placed), at_least=0.8)
    name = f"HTTP assign in batches of {BATCH}, {BATCHING} connections"
    yield Case(name, Rate.median(batched), (bar,))
    with services(new_database(), 2) as (ports, token):
        (runs,) = interleaved(partial(run, ports, token))
    yield Case("HTTP assign, 2 processes on one database", Rate.median(runs))


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
            for it in fleet(capacity_units=CELL_CAPACITY_UNITS_MAX).cells
        ]
        answer = httpx.put(
            f"http://127.0.0.1:{ports[0]}/v1/cells",
            json={"cells": cells, "disable_missing": True},
            headers={"authorization": f"Bearer {token}"},
        )
        assert answer.is_success, answer.text
        yield ports, token


def run(ports: list[int], token: str, batch: int = 0) -> Rate:
    """One burst of load from another process; the rate of commands."""
    plan = {
        "ports": ports,
        "path": PATH,
        "token": token,
        "connections": BATCHING if batch else CONNECTIONS,
        "seconds": SECONDS,
        "prefix": f"run-{next(_prefixes)}",
        "batch": batch,
    }
    command = [sys.executable, "-m", "tests.bench.http_load", json.dumps(plan)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert told.pop("failed") == 0
    return Rate(**told).times(batch or 1)
