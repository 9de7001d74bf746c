"""What the writer knows between turns: all cells, and the hosts it met last."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from adapters.entry import EMPTY_HEAD, Entry, Head
from adapters.mapper import EventMapper
from adapters.ports import Fleet, Opened, Seen, Wanted
from adapters.streams import stream_of
from domain.events import Event
from domain.ids import HostId
from domain.relay.assignment import AssignmentEvent
from domain.relay.cell import CellEvent, evolve_cell
from domain.relay.decide import evolve_assignment
from domain.relay.policy import Policy
from domain.relay.turn import Facts, Load, ReadSet


class WorkingSet:
    """States as of `head`, bounded by `hosts_max` hosts; the least recently met leave first."""

    def __init__(self, mapper: EventMapper, policy: Policy, hosts_max: int) -> None:
        self._mapper = mapper
        self._hosts_max = hosts_max
        self.policy = policy
        self.forget()

    def forget(self) -> None:
        """Know nothing any more; the next turn reads the fleet anew."""
        self.cold = True
        self.head = EMPTY_HEAD
        self.last_at = 0
        self.turn = 0
        self.facts = Facts()
        self.read_set = ReadSet(self.policy, self.facts)
        self._versions: dict[str, int] = {}
        self._hosts: OrderedDict[HostId, int] = OrderedDict()

    def wanted(self, hosts: Iterable[HostId], keys: Sequence[str] = ()) -> Wanted:
        """What must be looked up before these hosts can be decided on."""
        hosts = list(dict.fromkeys(hosts))
        return Wanted(
            streams=[host for host in hosts if host not in self._hosts],
            hosts=[host for host in hosts if host not in self.facts.liveness],
            keys=keys,
        )

    def wanted_streams(self, hosts: Iterable[HostId]) -> Wanted:
        """Only the streams among it: a host without one has no volatile rows to look up."""
        return Wanted(streams=[host for host in dict.fromkeys(hosts) if host not in self._hosts])

    def warm(self, fleet: Fleet) -> None:
        """Start from the fleet as it stands under the lock."""
        self.facts.cells.update(fleet.facts.cells)
        self.facts.loads.update(fleet.facts.loads)
        self.facts.selector.update(fleet.facts.selector)
        self._versions.update(fleet.versions)
        if fleet.last is not None:
            self._note(fleet.last, self._mapper.read(fleet.last))
        self.cold = False

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Take in what other processes wrote since `head`."""
        for entry in entries:
            event = self._mapper.read(entry)
            self._note(entry, event)
            if isinstance(event, AssignmentEvent):
                self._evolve_host(event, entry.version)
                for shift in event.shifts:
                    self.facts.loads[shift.cell_id] = Load(*shift[2:])
                    self.facts.changed_cells.add(shift.cell_id)
            else:
                self._versions[entry.stream] = entry.version
                if isinstance(event, CellEvent):
                    cell = self.facts.cells.get(event.cell_id)
                    self.facts.cells[event.cell_id] = evolve_cell(cell, event)
                    self.facts.changed_cells.add(event.cell_id)
                else:
                    self.facts.selector["general"] = 0

    def open(self, opened: Opened, wanted: Wanted) -> None:
        """Take in what a turn is told under the lock; after a turn of others, doubt the rest."""
        if opened.turn != self.turn + 1:
            self.facts.liveness.clear()
        self.turn = opened.turn
        known, self.facts.runtimes = self.facts.runtimes, opened.runtimes
        told = opened.runtimes.items()
        self.facts.changed_cells.update(key for key, it in told if known.get(key) is not it)
        # Streams may have been read before the lock was held: what came between is in the entries.
        self.see(opened.seen, wanted)
        self.catch_up(opened.entries)

    def see(self, seen: Seen, wanted: Wanted) -> None:
        """Take in hosts: their volatile rows, or that they have none, and missing streams."""
        for host in wanted.hosts:
            self.facts.liveness[host] = seen.liveness.get(host)
        for host, (snapshot, entries) in seen.loaded.items():
            assignment, version = None, 0
            if snapshot is not None:
                assignment, version = snapshot.assignment, snapshot.version
            for entry in entries:
                event = self._mapper.read(entry)
                assert isinstance(event, AssignmentEvent)
                assignment, version = evolve_assignment(assignment, event), entry.version
            self._hosts[host] = version
            if assignment is not None:
                self.facts.assignments[host] = assignment
            else:
                self.facts.liveness.setdefault(host, None)

    def doubt(self, hosts: Iterable[HostId]) -> None:
        """Forget volatile rows that were changed behind our back."""
        for host in hosts:
            self.facts.liveness.pop(host, None)

    def next_version(self, event: Event) -> tuple[str, int]:
        """The stream and the stream version that this new event gets."""
        stream = stream_of(event)
        if isinstance(event, AssignmentEvent):
            host = HostId(event.user_id, event.relay_host_id)
            version = self._hosts[host] = self._hosts.get(host, 0) + 1
        else:
            version = self._versions[stream] = self._versions.get(stream, 0) + 1
        return stream, version

    def stream_version(self, stream: str) -> int:
        """The newest version of a stream other than a host's; 0 when it has no events."""
        return self._versions.get(stream, 0)

    def knows(self, host: HostId) -> bool:
        """Whether the host's stream is at hand, be it empty."""
        return host in self._hosts

    def version_of(self, host: HostId) -> int:
        """The newest version of a loaded host's stream; 0 when it has no events."""
        return self._hosts[host]

    def next_turn(self) -> int:
        """The number of the turn that is about to be taken."""
        self.turn += 1
        return self.turn

    def wrote(self, entry: Entry, at: int) -> None:
        """Move the head to an entry of our own."""
        self.head = Head(entry.position, entry.chain, entry.recorded_at)
        self.last_at = max(self.last_at, at)

    def evict(self, met: Iterable[HostId]) -> None:
        """Keep the hosts just met and as many others as there is room for."""
        for host in met:
            if host in self._hosts:
                self._hosts.move_to_end(host)
        while len(self._hosts) > self._hosts_max:
            host, _ = self._hosts.popitem(last=False)
            self.facts.assignments.pop(host, None)
            self.facts.liveness.pop(host, None)

    def _evolve_host(self, event: AssignmentEvent, version: int) -> None:
        host = HostId(event.user_id, event.relay_host_id)
        if self._hosts.get(host) == version - 1:
            known = self.facts.assignments.get(host)
            self.facts.assignments[host] = evolve_assignment(known, event)
            self._hosts[host] = version

    def _note(self, entry: Entry, event: Event) -> None:
        self.wrote(entry, event.at)
