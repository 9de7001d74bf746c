"""A log writer's hand over a store in memory, on a clock that goes on when it is told to."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from adapters.clock import VirtualClock
from adapters.entry import Meta
from adapters.mapper import EventMapper
from adapters.memory import MemoryStore, write_rows
from app.outcome import Outcome
from app.scribe import Request, Scribe
from app.working_set import WorkingSet
from domain.relay.command import Command
from domain.relay.policy import Policy
from projections.catalogue import TABLES, Folder
from projections.relay.volatile import TABLES as VOLATILE_TABLES
from projections.table import Rows

Tables: TypeAlias = dict[str, list[tuple[Any, ...]]]
META = Meta("command", "property")
ALL_TABLES = (*TABLES, *VOLATILE_TABLES)


@dataclass(frozen=True)
class Step:
    """A command, given some milliseconds after the one before."""

    later_ms: int
    command: Command


class World:
    """Everything there is, without a database, a thread or a network."""

    def __init__(self, policy: Policy, hosts_max: int = 100) -> None:
        self.policy = policy
        self.clock = VirtualClock(1_000)
        self.store = MemoryStore()
        self.mapper = EventMapper()
        known = WorkingSet(self.mapper, policy, hosts_max)
        self.scribe = Scribe(self.store, known, self.clock)
        self._folded, self._folded_to = MemoryStore(), 0

    def run(self, command: Command, key: str | None = None, fingerprint: str = "") -> Outcome:
        """Take a turn with this one command."""
        return self.scribe.run([Request(command, META, key, fingerprint)])[0]

    def run_all(self, commands: Sequence[Command], key: str) -> list[Outcome]:
        """Take as many turns as these commands need, all with the same key."""
        outcomes: list[Outcome] = []
        while len(outcomes) < len(commands):
            waiting = [Request(it, META, key) for it in commands[len(outcomes) :]]
            outcomes.extend(self.scribe.run(waiting))
        return outcomes

    def take(self, step: Step) -> Outcome:
        self.clock.set(self.clock.now_ms() + step.later_ms)
        return self.run(step.command)

    def take_ahead(self, step: Step) -> Outcome:
        """The same without the lock, where that is possible."""
        self.clock.set(self.clock.now_ms() + step.later_ms)
        if self.scribe.needs_lock(step.command):
            return self.run(step.command)
        requests, draft = [Request(step.command, META)], self.scribe.new_draft()
        self.scribe.prepare(requests)
        self.scribe.decide_ahead(requests, draft, {})
        self.store.commit_ahead(draft.batch, self.scribe.known.next_turn()).finish()
        return draft.outcomes[0]

    def tables(self) -> Tables:
        """Every row there is, projections and volatile rows."""
        return deepcopy({table.name: self.store.dump(table.name) for table in ALL_TABLES})

    def rows(self, table_name: str) -> list[tuple[Any, ...]]:
        return self.store.dump(table_name)

    def check_fold(self) -> None:
        """The projections are exactly what the log folds to."""
        folder, rows = Folder(), Rows()
        for entry in self.store.entries[self._folded_to :]:
            folder.fold(self.mapper.read(entry), entry.version, entry.position, rows)
        write_rows(self._folded.tables, rows)
        self._folded_to = len(self.store.entries)
        for table in TABLES:
            assert self.rows(table.name) == self._folded.dump(table.name), table.name

    def check_deadlines(self) -> None:
        """Every host has its liveness, with a deadline for each of its leases and no other."""
        for volatile, held, key_length in (
            ("assignment_liveness", "assignments", 2),
            ("lease_deadlines", "activity_leases", 3),
        ):
            told = [row[:key_length] for row in self.rows(volatile)]
            assert told == [row[:key_length] for row in self.rows(held)], volatile


def said(outcome: Outcome) -> Any:
    """What an outcome tells the client, whether it is fresh or replayed."""
    refusal = outcome.refusal
    told = {"refusal": refusal.code, "facts": refusal.facts} if refusal else {"ok": outcome.answer}
    return orjson.loads(orjson.dumps({**told, "position": outcome.position}))
