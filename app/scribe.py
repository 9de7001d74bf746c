"""The log writer's hand: decide commands in order and write down what they do.

A turn is either taken under the lock, with everything read there, or decided ahead of it on what
is known from the turns before, and void if another writer had a turn in between.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adapters import ports
from adapters.clock import Clock
from adapters.entry import Entry, Meta, chained
from adapters.mapper import write_meta, write_state
from adapters.ports import Batch, Result, Seeing, Snapshot, Store, Transaction, Unavailable, Wanted
from app.outcome import Outcome, VersionMismatch, replayed
from app.renewing import renew_controls
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.limits import SWEEP_HOSTS_MAX
from domain.relay.assignment import AssignmentEvent
from domain.relay.command import Command
from domain.relay.decide import decide
from domain.relay.renewals import RenewControls
from domain.relay.turn import Decision
from projections.catalogue import Folder
from projections.relay.volatile import apply_touch, put_liveness

SNAPSHOT_EVERY_VERSIONS = 100


class Condition(NamedTuple):
    """The versions of a stream that a command is meant for; none listed means any but none."""

    stream: str
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A command on its way to the log. `key` and `fingerprint` make it safe to repeat."""

    command: Command
    meta: Meta
    key: str | None = None
    fingerprint: str = ""
    condition: Condition | None = None


class Draft:
    """What a turn has decided and not yet committed."""

    __slots__ = ("batch", "outcomes", "recorded_at", "results")

    def __init__(self, recorded_at: int) -> None:
        self.recorded_at = recorded_at
        self.results: dict[str, Result] = {}
        self.batch = Batch()
        self.outcomes: list[Outcome] = []


class Scribe:
    """Decides against a store's state. Not thread-safe: one thread decides."""

    def __init__(self, store: Store, known: WorkingSet, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._folder = Folder()
        self.known = known
        self._looking: tuple[Seeing, Wanted] | None = None
        self.draft: Draft | None = None
        """A locked turn whose commit was sent and not answered: it may be in the log or not."""

    def new_draft(self) -> Draft:
        return Draft(max(self._clock.now_us(), self.known.head.recorded_at))

    # ahead of the lock

    def needs_lock(self, command: Command) -> bool:
        """Whether the command searches among rows, or nothing is known yet to decide on."""
        return (
            self.known.cold
            or isinstance(command, RenewControls)
            or command.scan(self.known.read_set, 0) is not None
        )

    def prefetch(self, requests: Iterable[Request]) -> None:
        """Begin to look up the streams of commands that will be decided soon.

        Not before anything is known: what others add until the first turn would be missed.
        """
        if self._looking is None and not self.known.cold:
            wanted = self.known.wanted_streams([h for it in requests for h in it.command.hosts])
            if wanted.streams:
                with contextlib.suppress(Unavailable):  # whoever needs it will ask again
                    self._looking = (self._store.preload(wanted), wanted)

    def prepare(self, requests: Iterable[Request]) -> None:
        """Have at hand all that these commands read."""
        hosts = [host for it in requests for host in it.command.hosts]
        wanted = self.known.wanted_streams(hosts)
        if wanted.streams and self._looking is not None:
            self._finish_looking()
            wanted = self.known.wanted_streams(hosts)
        if wanted.streams:
            self.known.see(self._store.preload(wanted).finish(), wanted)
        wanted = self.known.wanted(hosts)
        if wanted.hosts:
            self.known.see(self._store.preload(wanted).finish(), wanted)
        self.known.evict(hosts)

    def forget(self) -> None:
        """Know nothing any more, and what is on its way neither."""
        looking, self._looking = self._looking, None
        self.known.forget()
        if looking is not None:
            with contextlib.suppress(Unavailable):
                looking[0].finish()

    def _finish_looking(self) -> None:
        assert self._looking is not None
        (seeing, wanted), self._looking = self._looking, None
        self.known.see(seeing.finish(), wanted)

    def decide_ahead(
        self, requests: Sequence[Request], draft: Draft, committing: dict[str, Result]
    ) -> int:
        """Decide on prepared hosts without the lock; answers how many.

        It stops at a command that needs the lock since one before it was decided.

        `committing` holds the results of the turn before. Keys are looked up only now: a result
        is stored, or in the turn before, or in this draft, and nowhere else.
        """
        known = self.known
        keys = [it.key for it in requests if it.key is not None]
        if keys:
            if self._looking is not None:
                self._finish_looking()  # one look at a time
            stored = self._store.preload(Wanted(keys=keys)).finish().results
            draft.results = {**stored, **committing, **draft.results}
        now = max(self._clock.now_ms(), known.last_at)
        for done, request in enumerate(requests):
            if self.needs_lock(request.command):
                return done
            outcome = self._repeated(request, draft)
            if outcome is None:
                outcome = self._unmet(request)
                if outcome is None:
                    decision = decide(known.read_set, request.command, now)
                    self._write(decision, request.meta, draft)
                    outcome = Outcome(decision.answer, decision.refusal, known.head.position)
                self._keep(request, outcome, draft, now)
            draft.outcomes.append(outcome)
        return len(requests)

    # under the lock

    def run(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide and commit the first requests; answers as many outcomes as it took.

        A command that searches among hosts sees only what is committed, so it gets a turn alone.
        None is taken when too much was missed; then the next turn starts from the fleet.
        """
        self.draft = None
        if self._looking is not None:
            self._finish_looking()
        known = self.known
        hosts = [host for request in requests for host in request.command.hosts]
        known.doubt(hosts)
        wanted = known.wanted(hosts, [it.key for it in requests if it.key is not None])
        with self._store.transaction() as transaction:
            opened = transaction.open(None if known.cold else known.head.position, wanted)
            if len(opened.entries) >= ports.CATCH_UP_ENTRIES_MAX:
                self.forget()
                return []
            if known.cold:
                known.warm(transaction.fleet())
            known.open(opened, wanted)
            now = max(self._clock.now_ms(), known.last_at)
            draft = self.new_draft()
            draft.results = opened.seen.results
            for request in requests:
                if not self._take(request, draft, now, transaction):
                    break
            self.draft = draft
            transaction.commit(draft.batch)
            self.draft = None
        known.evict(hosts)
        return draft.outcomes

    def _take(self, request: Request, draft: Draft, now: int, transaction: Transaction) -> bool:
        """Decide one request; False leaves it, or all after it, to the next turn."""
        outcome = self._repeated(request, draft)
        if outcome is not None:
            draft.outcomes.append(outcome)
            return True
        command, known = request.command, self.known
        scan = command.scan(known.read_set, now)
        alone = scan is not None or isinstance(command, RenewControls)
        if alone and draft.outcomes:
            return False
        unmet = self._unmet(request)
        if unmet is not None:
            outcome = unmet
        elif isinstance(command, RenewControls):
            answer = renew_controls(command, known, now, transaction)
            known.doubt(HostId(it.user_id, it.relay_host_id) for it in command.items)
            outcome = Outcome(answer, None, known.head.position)
        else:
            found: list[HostId] = []
            if scan is not None:
                found = transaction.find(scan, SWEEP_HOSTS_MAX)
                known.doubt(found)
                wanted = known.wanted(found)
                known.see(transaction.see(wanted), wanted)
            decision = decide(known.read_set, command, now, found)
            self._write(decision, request.meta, draft)
            known.evict(found)
            outcome = Outcome(decision.answer, decision.refusal, known.head.position)
        self._keep(request, outcome, draft, now)
        draft.outcomes.append(outcome)
        return not alone

    # both

    def _repeated(self, request: Request, draft: Draft) -> Outcome | None:
        if request.key is None or request.key not in draft.results:
            return None
        return replayed(draft.results[request.key], request.fingerprint)

    def _unmet(self, request: Request) -> Outcome | None:
        """The refusal of a command that is meant for another version."""
        if request.condition is None:
            return None
        stream, versions = request.condition
        version = self.known.stream_version(stream)
        if version and (not versions or version in versions):
            return None
        return Outcome(None, VersionMismatch(version=version), self.known.head.position)

    def _keep(self, request: Request, outcome: Outcome, draft: Draft, now: int) -> None:
        if request.key is not None and outcome.lasts:
            request_id = request.meta.correlation_id
            result = outcome.result(request.key, request.fingerprint, request_id, now)
            draft.results[request.key] = result
            draft.batch.results.append(result)

    def _write(self, decision: Decision, meta: Meta, draft: Draft) -> None:
        """Turn a decision into log entries and rows, and take over its states."""
        known, batch = self.known, draft.batch
        known.facts.adopt(decision.after)
        stored_meta = write_meta(meta) if decision.events else ""
        long: set[HostId] = set()
        for event in decision.events:
            stream, version = known.next_version(event)
            position, state = known.head.position + 1, write_state(event, stored_meta)
            parts = (position, stream, version, event.topic, state, draft.recorded_at)
            entry = Entry(*parts, chained(known.head.chain, *parts))
            known.wrote(entry, event.at)
            batch.entries.append(entry)
            self._folder.fold(event, version, position, batch.rows)
            if version % SNAPSHOT_EVERY_VERSIONS == 0 and isinstance(event, AssignmentEvent):
                long.add(HostId(event.user_id, event.relay_host_id))
        for host in long:
            assignment = known.facts.assignments[host]
            batch.snapshots.append(Snapshot(host, known.version_of(host), assignment))
        for touch in decision.touches:
            apply_touch(touch, batch.rows)
        for host, alive in decision.after.liveness.items():
            assert alive is not None
            put_liveness(host, alive, batch.rows)
