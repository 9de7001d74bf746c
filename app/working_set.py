"""What the writer knows between turns: all cells, and the hosts it met last."""

from collections import OrderedDict
from collections.abc import Iterable

from adapters.entry import EMPTY_HEAD, Entry, Head
from adapters.mapper import EventMapper
from adapters.ports import Fleet, Loaded, Opened
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
        self.facts = Facts()
        self.read_set = ReadSet(self.policy, self.facts)
        self._versions: dict[str, int] = {}
        self._hosts: OrderedDict[HostId, int] = OrderedDict()

    def missing(self, hosts: Iterable[HostId]) -> list[HostId]:
        """The hosts whose streams must be loaded."""
        return [host for host in hosts if host not in self._hosts]

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
            else:
                self._versions[entry.stream] = entry.version
                if isinstance(event, CellEvent):
                    cell = self.facts.cells.get(event.cell_id)
                    self.facts.cells[event.cell_id] = evolve_cell(cell, event)
                else:
                    self.facts.selector["general"] = 0

    def load(self, opened: Opened) -> None:
        """Take in the volatile rows of this turn and the streams that were missing."""
        self.facts.runtimes = opened.runtimes
        self.facts.liveness = opened.liveness
        self.load_hosts(opened.loaded)

    def load_hosts(self, loaded: dict[HostId, Loaded]) -> None:
        for host, (snapshot, entries) in loaded.items():
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

    def next_version(self, event: Event) -> tuple[str, int]:
        """The stream and the stream version that this new event gets."""
        stream = stream_of(event)
        if isinstance(event, AssignmentEvent):
            host = HostId(event.user_id, event.relay_host_id)
            version = self._hosts[host] = self._hosts.get(host, 0) + 1
        else:
            version = self._versions[stream] = self._versions.get(stream, 0) + 1
        return stream, version

    def version_of(self, host: HostId) -> int:
        """The newest version of a loaded host's stream; 0 when it has no events."""
        return self._hosts[host]

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

    def _evolve_host(self, event: AssignmentEvent, version: int) -> None:
        host = HostId(event.user_id, event.relay_host_id)
        if self._hosts.get(host) == version - 1:
            known = self.facts.assignments.get(host)
            self.facts.assignments[host] = evolve_assignment(known, event)
            self._hosts[host] = version

    def _note(self, entry: Entry, event: Event) -> None:
        self.wrote(entry, event.at)
