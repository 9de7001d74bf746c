"""One command's turn: what it may read and what it has decided so far.

A turn never changes its read set. It keeps the states after its own events in an overlay, so a
rule that decides several things in a row sees each of them, and a refusal leaves no trace except
what was settled before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from domain.events import Event
from domain.ids import HostId
from domain.limits import ACTIVITY_LEASE_MS, Region
from domain.refusals import AssignmentNotFound, CellNotFound, Refusal
from domain.relay.assignment import Assignment, AssignmentEvent
from domain.relay.cell import AdmissionSelectorOpened, Cell, CellEvent, evolve_cell
from domain.relay.policy import Policy
from domain.relay.runtime import (
    SILENT,
    CellRuntime,
    Deadline,
    Liveness,
    Touch,
    TouchDeadline,
    TouchLiveness,
    TouchPreference,
    TouchRuntime,
)

K = TypeVar("K")
V = TypeVar("V")
EvolveAssignment = Callable[[Assignment | None, AssignmentEvent], Assignment]


class Load(NamedTuple):
    """A cell's reservations: units by counters, units by leases, outstanding connections."""

    reserved_units: int = 0
    leased_units: int = 0
    connections: int = 0


NO_LOAD = Load()


@dataclass(slots=True)
class Facts:
    """States by key. Cells are always all there; hosts only where a command names them."""

    cells: dict[str, Cell] = field(default_factory=dict)
    loads: dict[str, Load] = field(default_factory=dict)
    runtimes: dict[str, CellRuntime] = field(default_factory=dict)
    assignments: dict[HostId, Assignment] = field(default_factory=dict)
    liveness: dict[HostId, Liveness | None] = field(default_factory=dict)
    """None for a host that is known to have no volatile row."""
    selector: dict[str, int] = field(default_factory=dict)
    """The admission selector's generation under "general"; empty until it was opened."""
    changed_cells: set[str] = field(default_factory=set, compare=False)
    """Cells that are not any more, hold or report as when `ranking` last looked."""

    def adopt(self, after: "Facts") -> None:
        """Take over the states that a decision left behind."""
        self.cells.update(after.cells)
        self.loads.update(after.loads)
        self.runtimes.update(after.runtimes)
        self.assignments.update(after.assignments)
        self.liveness.update(after.liveness)
        self.selector.update(after.selector)
        self.changed_cells.update(after.cells, after.loads, after.runtimes)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a decision is a function of, beside the command and the time."""

    policy: Policy
    facts: Facts
    remembered: dict[str, Any] = field(default_factory=dict)
    """What rules remember between decisions, for speed alone, for as long as facts last."""


@dataclass(slots=True)
class Decision:
    """A command's outcome: an answer or a refusal, the events, the touches, the states after."""

    answer: Any
    refusal: Refusal | None
    events: list[Event]
    touches: list[Touch]
    after: Facts


class Turn:
    """The state of one decision in the making. Times are epoch ms."""

    __slots__ = (
        "_base",
        "_evolve",
        "_journal",
        "_settled",
        "after",
        "events",
        "found",
        "now",
        "policy",
        "remembered",
        "touches",
    )

    def __init__(
        self,
        read_set: ReadSet,
        now: int,
        evolve: EvolveAssignment,
        found: Sequence[HostId] = (),
    ) -> None:
        self._base = read_set.facts
        self._evolve = evolve
        self._journal: list[tuple[dict[Any, Any], Any, Any]] = []
        self._settled = (0, 0)
        self.remembered = read_set.remembered
        self.policy = read_set.policy
        self.now = now
        self.found = found
        self.after = Facts()
        self.events: list[Event] = []
        self.touches: list[Touch] = []

    # reading

    def cell(self, cell_id: str) -> Cell | None:
        return self.after.cells.get(cell_id) or self._base.cells.get(cell_id)

    def cells(self) -> dict[str, Cell]:
        """All cells, by id."""
        return {**self._base.cells, **self.after.cells} if self.after.cells else self._base.cells

    def loads(self) -> dict[str, Load]:
        """The loads of all cells that have any, by cell."""
        return {**self._base.loads, **self.after.loads} if self.after.loads else self._base.loads

    @property
    def changed_cells(self) -> set[str]:
        """The cells that changed since this was last emptied."""
        return self._base.changed_cells

    def runtimes(self) -> dict[str, CellRuntime]:
        """What all cells that reported last said, by cell."""
        after = self.after.runtimes
        return {**self._base.runtimes, **after} if after else self._base.runtimes

    def require_cell(self, cell_id: str) -> Cell:
        """The cell. Refuses `cell_not_found`."""
        cell = self.cell(cell_id)
        if cell is None:
            raise CellNotFound(cell_id=cell_id)
        return cell

    def load(self, cell_id: str) -> Load:
        return self.after.loads.get(cell_id) or self._base.loads.get(cell_id) or NO_LOAD

    def runtime(self, cell_id: str) -> CellRuntime:
        return self.after.runtimes.get(cell_id) or self._base.runtimes.get(cell_id) or SILENT

    @property
    def selector_generation(self) -> int | None:
        return {**self._base.selector, **self.after.selector}.get("general")

    def assignment(self, host: HostId) -> Assignment | None:
        return self.after.assignments.get(host) or self._base.assignments.get(host)

    def require_assignment(self, host: HostId) -> Assignment:
        """The host's assignment. Refuses `assignment_not_found`."""
        assignment = self.assignment(host)
        if assignment is None:
            raise AssignmentNotFound()
        return assignment

    def liveness(self, host: HostId) -> Liveness:
        """The host's deadlines. A host without any (a restored log) gets full fresh ones."""
        known = self.after.liveness.get(host) or self._base.liveness.get(host)
        return known or Liveness(self.now + ACTIVITY_LEASE_MS, self.now)

    def deadline(self, host: HostId, activity_id: str) -> Deadline:
        """A lease's deadline; full and fresh when none is known."""
        known = self.liveness(host).deadlines.get(activity_id)
        return known or Deadline(self.now + ACTIVITY_LEASE_MS, self.now)

    # deciding

    def record(self, event: Event) -> None:
        """Decide that this happened."""
        self.events.append(event)
        if isinstance(event, AssignmentEvent):
            host = HostId(event.user_id, event.relay_host_id)
            after = self._evolve(self.assignment(host), event)
            self._put(self.after.assignments, host, after)
            for shift in event.shifts:
                self._put(self.after.loads, shift.cell_id, Load(*shift[2:]))
        elif isinstance(event, CellEvent):
            after_cell = evolve_cell(self.cell(event.cell_id), event)
            self._put(self.after.cells, event.cell_id, after_cell)
        else:
            assert isinstance(event, AdmissionSelectorOpened)
            self._put(self.after.selector, "general", 0)

    def touch_runtime(self, cell_id: str, runtime: CellRuntime) -> None:
        self._put(self.after.runtimes, cell_id, runtime)
        self.touches.append(TouchRuntime(cell_id, runtime))

    def touch_liveness(self, host: HostId, lease_expires_at: int, last_activity_at: int) -> None:
        deadlines = self.liveness(host).deadlines
        self._put(
            self.after.liveness, host, Liveness(lease_expires_at, last_activity_at, deadlines)
        )
        self.touches.append(TouchLiveness(*host, lease_expires_at, last_activity_at))

    def extend_liveness(self, host: HostId, lease_expires_at: int) -> None:
        """Note activity now; the assignment's lease is never shortened."""
        known = self.liveness(host).lease_expires_at if self._knows(host) else 0
        self.touch_liveness(host, max(known, lease_expires_at), self.now)

    def touch_deadline(self, host: HostId, activity_id: str, deadline: Deadline | None) -> None:
        """Set a lease's deadline; None drops it together with the lease."""
        known = self.liveness(host)
        deadlines = known.deadlines.copy()
        if deadline is not None:
            deadlines[activity_id] = deadline
        else:
            deadlines.pop(activity_id, None)
        after = Liveness(known.lease_expires_at, known.last_activity_at, deadlines)
        self._put(self.after.liveness, host, after)
        self.touches.append(TouchDeadline(*host, activity_id, deadline))

    def touch_preference(self, host: HostId, region: Region | None) -> None:
        self.touches.append(TouchPreference(*host, region, self.now))

    def settle(self) -> None:
        """Make what was decided so far survive a later refusal (the original commits here)."""
        self._settled = (len(self.events), len(self.touches))
        self._journal.clear()

    def decided(self, answer: Any) -> Decision:
        return Decision(answer, None, self.events, self.touches, self.after)

    def refused(self, refusal: Refusal) -> Decision:
        for states, key, before in reversed(self._journal):
            if before is None:
                del states[key]
            else:
                states[key] = before
        events, touches = self._settled
        return Decision(None, refusal, self.events[:events], self.touches[:touches], self.after)

    def _knows(self, host: HostId) -> bool:
        return bool(self.after.liveness.get(host) or self._base.liveness.get(host))

    def _put(self, states: dict[K, V], key: K, value: V) -> None:
        self._journal.append((states, key, states.get(key)))
        states[key] = value
