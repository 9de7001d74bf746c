"""A process of its own with a log writer: `python -m tests.writer.rival DSN NAME SEED COUNT NOW`.

Prints a line of JSON for each command: its number, the answer or refusal, and the log's position.
"""

import pickle
import sys
from collections import deque
from concurrent.futures import Future

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.postgres.store import PostgresStore
from app.outcome import Outcome
from app.scribe import Request
from app.telemetry import Telemetry
from app.writer import LogWriter
from domain.ids import HostId
from domain.relay.command import Command, HostCommand
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from tests.writer.commands import random_commands

IN_FLIGHT = 24


def main(dsn: str, name: str, seed: int, count: int, now: int) -> None:
    clock = VirtualClock(now)
    store = PostgresStore(dsn)
    writer = LogWriter(store, clock, Policy(require_live_cells=False), Telemetry())
    writer.start()
    grants: dict[HostId, Grant] = {}
    told: list[tuple[str, Command, Outcome]] = []
    waiting: deque[tuple[str, Command, Future[Outcome]]] = deque()

    def settle() -> None:
        command_id, command, future = waiting.popleft()
        outcome = future.result()
        told.append((command_id, command, outcome))
        if isinstance(outcome.answer, Grant) and isinstance(command, HostCommand):
            grants[command.host] = outcome.answer

    for number, command in enumerate(random_commands(seed, count, grants)):
        command_id = f"{name}-{number}"
        future = writer.submit(Request(command, Meta(command_id, name)))
        waiting.append((command_id, command, future))
        if len(waiting) >= IN_FLIGHT:
            settle()
    while waiting:
        settle()
    writer.stop()
    store.close()
    lines = [
        (command_id, command, outcome.answer, code(outcome), outcome.position)
        for command_id, command, outcome in told
    ]
    sys.stdout.buffer.write(pickle.dumps(lines))


def code(outcome: Outcome) -> str | None:
    return outcome.refusal.code if outcome.refusal else None


if __name__ == "__main__":
    dsn, name, *numbers = sys.argv[1:]
    main(dsn, name, *map(int, numbers))
