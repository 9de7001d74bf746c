"""What a relay command is: a frozen request that names the hosts it must see."""

from dataclasses import dataclass
from typing import NamedTuple

from domain.ids import HostId
from domain.relay.turn import ReadSet


class ObservedConnections(NamedTuple):
    """Hosts whose claimed connections on a cell a snapshot includes, or who owe debt twice."""

    cell_id: str
    inclusion_watermark: int
    now: int


class LapsingConnections(NamedTuple):
    """Hosts with a reserved connection timed out at `now`, or debt timed out at `retired_at`."""

    now: int
    retired_at: int


class ExpiredLeases(NamedTuple):
    """Hosts with an activity lease that ended at or before `now`."""

    now: int


class ExpiredCounts(NamedTuple):
    """Hosts whose own lease ended at or before `now` while a counter is above zero."""

    now: int


class OldPreferences(NamedTuple):
    """Hosts whose region preference was observed before `before`."""

    before: int


Scan = ObservedConnections | LapsingConnections | ExpiredLeases | ExpiredCounts | OldPreferences
"""A search over many hosts that runs inside the command's own transaction."""


@dataclass(frozen=True, slots=True)
class Command:
    """A request to decide on."""

    @property
    def hosts(self) -> tuple[HostId, ...]:
        """The hosts whose state the decision reads."""
        return ()

    def scan(self, read_set: ReadSet, now: int) -> Scan | None:
        """Which further hosts to find and load, if any."""
        return None


@dataclass(frozen=True, slots=True)
class HostCommand(Command):
    """A request about one host."""

    host: HostId

    @property
    def hosts(self) -> tuple[HostId, ...]:
        return (self.host,)
