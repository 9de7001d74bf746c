"""`python -m tests.bench [GROUP…]`: all groups of cases, or those that are named."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psycopg
from rich.console import Console

from adapters.postgres import migrate
from adapters.postgres.server import Server, create_database, open_server
from app.collector import collect_rarely
from tests.bench.growth_cases import growth_cases
from tests.bench.http_cases import http_cases
from tests.bench.log_cases import log_cases
from tests.bench.result import Case, keep, show
from tests.bench.size_cases import size_cases
from tests.bench.writer_cases import writer_cases

GROUPS: dict[str, Callable[[Callable[[], str]], Iterator[Case]]] = {
    "writer": writer_cases,
    "http": http_cases,
    "log": log_cases,
    "growth": growth_cases,
    "size": size_cases,
}


def databases(server: Server) -> Callable[[], str]:
    """A maker of fresh migrated databases."""
    numbers = count(1)

    def new_database() -> str:
        dsn = create_database(server, f"bench_{next(numbers)}")
        with psycopg.connect(dsn, autocommit=True) as connection:
            migrate.apply(connection)
        return dsn

    return new_database


def main(names: list[str]) -> int:
    collect_rarely()
    console, cases = Console(), []
    with tempfile.TemporaryDirectory() as folder, open_server(None, Path(folder)) as server:
        new_database = databases(server)
        for name, group in GROUPS.items():
            if names and name not in names:
                continue
            for case in group(new_database):
                console.print(case.name)
                cases.append(case)
    if not names:
        keep(cases)
    return 0 if show(cases, console) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
