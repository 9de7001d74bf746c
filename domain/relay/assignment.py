"""A host's assignment: its cell and epoch, its counters, leases, connections and controls.

Counters, leases and a cell's reserved units are three facts that agree in ordinary life and may
differ after raw counter changes or aggregate expiry (contract 1.2 and 3). Each event therefore
carries all of them as they are afterwards; the fold assigns and never computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from domain.events import Event
from domain.ids import PENDING_CONTROL_PREFIX, HostId, pending_control_id
from domain.limits import DORMANCY_MS

# ids and words

Kind: TypeAlias = Literal["control", "splice", "invite", "install", "confirmation", "migration"]
KINDS: tuple[Kind, ...] = ("control", "splice", "invite", "install", "confirmation", "migration")
REQUEST_UNITS: dict[Kind, int] = {kind: 2 if kind == "splice" else 1 for kind in KINDS}
ConnectionState: TypeAlias = Literal["reserved", "late-arrival-debt", "claimed", "released"]


class Counts(NamedTuple):
    """How many activities of each kind a host is counted with; the order of `KINDS`."""

    controls: int = 0
    splices: int = 0
    invites: int = 0
    installs: int = 0
    confirmations: int = 0
    migrations: int = 0

    @property
    def units(self) -> int:
        """Request units by the counters; a splice weighs two."""
        return sum(self) + self.splices

    def plus(self, kind: Kind, delta: int) -> "Counts":
        """The counts with one kind changed, never below zero."""
        index = KINDS.index(kind)
        counts = list(self)
        counts[index] = max(0, counts[index] + delta)
        return Counts(*counts)


class Lease(NamedTuple):
    """One activity's claim on units of a cell."""

    kind: Kind
    cell_id: str
    units: int


class Opened(NamedTuple):
    """A connection reservation made for a control that is expected. Times epoch ms."""

    number: int
    timeout_at: int


class Shift(NamedTuple):
    """What one event did to one cell. `units` is the change asked for, the rest is as after."""

    cell_id: str
    units: int
    reserved_after: int
    leased_after: int
    connections_after: int


# events


class AssignmentEvent(Event):
    user_id: str
    relay_host_id: str
    shifts: tuple[Shift, ...] = ()


class HeldEvent(AssignmentEvent):
    """An event after which the host holds `cell_id` at `epoch`, counted with `counts`."""

    cell_id: str
    epoch: int
    counts: Counts


# state


@dataclass(frozen=True, slots=True)
class Connection:
    """An outstanding connection reservation of a host. Times epoch ms."""

    cell_id: str
    epoch: int
    state: ConnectionState
    opened_at: int
    timeout_at: int
    inclusion_watermark: int | None = None
    claim_activity_id: str | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """What an activated control announced. It outlives its lease until the next activation."""

    cell_id: str
    cell_incarnation: str
    epoch: int
    generation: int
    idle_regional_rehome: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    """A host's assignment as its events tell it. `connections` holds the outstanding ones only."""

    user_id: str
    relay_host_id: str
    cell_id: str
    epoch: int
    counts: Counts
    leases: dict[str, Lease] = field(default_factory=dict)
    """Never changed in place. A dict, for `|` and `copy`: where entries were removed they take a
    fifth of the time of `{**leases}`, and a host may hold many."""
    connections: Mapping[int, Connection] = field(default_factory=dict)
    connections_opened: int = 0
    controls: Mapping[str, Control] = field(default_factory=dict)

    @property
    def host(self) -> HostId:
        return HostId(self.user_id, self.relay_host_id)

    def active(self, counts: Counts, leases: dict[str, Lease]) -> "Assignment":
        """The same place with other activities; `replace` takes five times as long."""
        return Assignment(
            self.user_id,
            self.relay_host_id,
            self.cell_id,
            self.epoch,
            counts,
            leases,
            self.connections,
            self.connections_opened,
            self.controls,
        )

    def dormant(self, last_activity_at: int, now: int) -> bool:
        """Whether the host may be moved freely: no activity counted, none for 24 h."""
        return not any(self.counts) and now >= last_activity_at + DORMANCY_MS

    def holds_control(self) -> bool:
        """Whether its cell already holds a unit for this host's control.

        Only leases can say so: in a move two controls are legal, and the counter has one number.
        """
        pending = pending_control_id(self.epoch)
        return any(
            lease.kind == "control"
            and lease.cell_id == self.cell_id
            and (activity_id == pending or not activity_id.startswith(PENDING_CONTROL_PREFIX))
            for activity_id, lease in self.leases.items()
        )

    def unclaimed_connection(self, cell_id: str, epoch: int) -> int | None:
        """The number of the oldest outstanding connection that no control has claimed."""
        return next(
            (
                number
                for number, it in self.connections.items()
                if it.claim_activity_id is None and it.cell_id == cell_id and it.epoch == epoch
            ),
            None,
        )
