"""Load, a blow, and the check that nothing acknowledged was lost or doubled."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg

from adapters.postgres.server import open_server
from adapters.postgres.store import PostgresStore
from tests.crash.service import (
    START_SECONDS_MAX,
    WRITES_AGAIN_SECONDS_MAX,
    Clients,
    RunningService,
)
from tests.fold import check_log_and_tables
from tests.waiting import until

CLIENTS = 6
PLACED_BEFORE_THE_BLOW = 60
CELLS = [
    {"cell_id": f"cell-{n}", "cell_url": f"https://cell-{n}.test", "capacity_units": 50_000}
    for n in range(3)
]
Blow = Callable[[RunningService], None]


def kill_the_service(service: RunningService) -> None:
    service.kill_and_restart()
    service.until_ready(START_SECONDS_MAX)


def cut_all_connections(service: RunningService) -> None:
    with open_server(None, service.folder) as server, psycopg.connect(server.dsn) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def drill(folder: Path, blow: Blow, times: int) -> int:
    """Strike a service under load, then look at everything; how many hosts were acknowledged."""
    with RunningService(folder) as service:
        with service.client() as client:
            answer = client.put("/v1/cells", json={"cells": CELLS, "disable_missing": True})
            assert answer.is_success, answer.text
        placed: dict[str, int] = {}
        for number in range(times):
            placed.update(strike(service, blow, f"blow-{number}"))
        with open_server(None, folder) as server:
            store = PostgresStore(server.dsn)
            check_log_and_tables(store)
            check_each_placed_once(store, placed)
            store.close()
        return len(placed)


def strike(service: RunningService, blow: Blow, name: str) -> dict[str, int]:
    """One blow; every host that was acknowledged, before, during or after it."""
    clients = [Clients(service, f"{name}-{n}") for n in range(CLIENTS)]
    for client in clients:
        client.start()
    until(lambda: sum(len(it.placed) for it in clients) >= PLACED_BEFORE_THE_BLOW)
    blow(service)
    writes_again(service, f"{name}-again")
    for client in clients:
        client.enough.set()
    for client in clients:
        client.join()
    with service.client() as session:
        for client in clients:
            if client.unanswered is not None:
                client.place(session, client.unanswered)
            assert client.unanswered is None
    return {host: epoch for client in clients for host, epoch in client.placed.items()}


def writes_again(service: RunningService, host: str) -> None:
    """A new command succeeds in time, without anybody's help."""
    deadline = time.monotonic() + WRITES_AGAIN_SECONDS_MAX
    probe = Clients(service, "probe")
    with service.client() as session:
        while not probe.placed:
            assert time.monotonic() < deadline, "the service does not write again"
            probe.place(session, host)


def check_each_placed_once(store: PostgresStore, placed: dict[str, int]) -> None:
    """Every acknowledged host is in the log exactly once, at the epoch it was told."""
    written = Counter(
        entry.stream.rsplit("/", 1)[1]
        for entry in store.read(0, 1_000_000)
        if entry.topic == "host.placed"
    )
    assert len(placed) >= PLACED_BEFORE_THE_BLOW
    assert set(placed.values()) == {1}
    assert {host: written[host] for host in placed} == dict.fromkeys(placed, 1)
    assert set(written.values()) == {1}
