"""One turn of the log writer: lock, catch up, decide in order, write, commit."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.clock import Clock
from adapters.entry import Entry, Meta, chained
from adapters.mapper import write_meta, write_state
from adapters.ports import Batch, Opening, Result, Snapshot, Store, Transaction
from app.outcome import Outcome, replayed
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.limits import SWEEP_HOSTS_MAX
from domain.relay.assignment import AssignmentEvent
from domain.relay.command import Command
from domain.relay.decide import decide
from domain.relay.renewals import RefusedRenewal, RenewControls, Renewed, refused_on_sight
from domain.relay.turn import Decision
from projections.catalogue import Folder
from projections.relay.volatile import apply_touch

SNAPSHOT_EVERY_VERSIONS = 100


@dataclass(frozen=True, slots=True)
class Request:
    """A command on its way to the log. `key` and `fingerprint` make it safe to repeat."""

    command: Command
    meta: Meta
    key: str | None = None
    fingerprint: str = ""


class Draft:
    """What a turn has decided and not yet committed."""

    __slots__ = ("batch", "clock", "met", "now", "outcomes", "results")

    def __init__(self, now: int, clock: int, results: dict[str, Result]) -> None:
        self.now = now
        self.clock = clock
        self.results = results
        self.batch = Batch()
        self.outcomes: list[Outcome] = []
        self.met: list[HostId] = []


class Scribe:
    """Runs turns against a store. Not thread-safe: one writer owns it."""

    def __init__(self, store: Store, known: WorkingSet, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._folder = Folder()
        self.known = known
        self.draft: Draft | None = None
        """The turn in hand; kept after a failure, to find out whether it was committed."""

    def run(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide and commit the first requests; answers as many outcomes as it took.

        A command that searches among hosts sees only what is committed, so it gets a turn alone.
        """
        self.draft = None
        hosts = list(dict.fromkeys([h for it in requests for h in it.command.hosts]))
        keys = [request.key for request in requests if request.key is not None]
        known = self.known
        with self._store.transaction() as transaction:
            opened = transaction.open(
                Opening(
                    after=None if known.cold else known.head.position,
                    streams=known.missing(hosts),
                    hosts=hosts,
                    keys=keys,
                )
            )
            if known.cold:
                known.warm(transaction.fleet())
            known.catch_up(opened.entries)
            known.load(opened)
            now = max(self._clock.now_ms(), known.last_at)
            draft = Draft(now, max(opened.clock, known.head.recorded_at), opened.results)
            draft.met = hosts
            for request in requests:
                if not self._take(request, draft, transaction):
                    break
            self.draft = draft
            transaction.commit(draft.batch)
        known.evict(draft.met)
        return draft.outcomes

    def _take(self, request: Request, draft: Draft, transaction: Transaction) -> bool:
        """Decide one request; False leaves it to the next turn."""
        if request.key is not None and request.key in draft.results:
            draft.outcomes.append(replayed(draft.results[request.key], request.fingerprint))
            return True
        command = request.command
        scan = command.scan(self.known.read_set, draft.now)
        alone = scan is not None or isinstance(command, RenewControls)
        if alone and draft.outcomes:
            return False
        if isinstance(command, RenewControls):
            answer = _renew(command, draft.now, transaction)
            outcome = Outcome(answer, None, self.known.head.position)
        else:
            found: list[HostId] = []
            if scan is not None:
                found = transaction.find(scan, SWEEP_HOSTS_MAX)
                self._meet(found, draft, transaction)
            decision = decide(self.known.read_set, command, draft.now, found)
            self._write(decision, request.meta, draft)
            outcome = Outcome(decision.answer, decision.refusal, self.known.head.position)
        draft.outcomes.append(outcome)
        if request.key is not None:
            result = outcome.result(request.key, request.fingerprint, draft.now)
            draft.results[request.key] = result
            draft.batch.results.append(result)
        return not alone

    def _meet(self, found: list[HostId], draft: Draft, transaction: Transaction) -> None:
        """Load hosts that a scan found; the lock is held, so they are exact."""
        strangers = [host for host in found if host not in self.known.facts.liveness]
        opening = Opening(after=None, streams=self.known.missing(found), hosts=strangers)
        opened = transaction.open(opening)
        self.known.load_hosts(opened.loaded)
        self.known.facts.liveness.update(opened.liveness)
        draft.met.extend(found)

    def _write(self, decision: Decision, meta: Meta, draft: Draft) -> None:
        """Turn a decision into log entries and rows, and take over its states."""
        known, batch = self.known, draft.batch
        known.facts.adopt(decision.after)
        stored_meta = write_meta(meta) if decision.events else ""
        long: set[HostId] = set()
        for event in decision.events:
            stream, version = known.next_version(event)
            position, state = known.head.position + 1, write_state(event, stored_meta)
            parts = (position, stream, version, event.topic, state, draft.clock)
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


def _renew(command: RenewControls, now: int, transaction: Transaction) -> Renewed:
    refused = refused_on_sight(command.items, now)
    asked = [index for index in range(len(command.items)) if index not in refused]
    items = [command.items[index] for index in asked]
    for index, code in transaction.renew(command.cell_id, items, now):
        refused[asked[index]] = code
    listed = tuple(RefusedRenewal(index, refused[index]) for index in sorted(refused))
    return Renewed(len(command.items) - len(refused), listed)
