"""Connections expected on a limited cell: reserved, owed as debt, claimed, released (contract 4.7).

A reservation is made with a pending control and counts against the cell's headroom until a
snapshot of the cell includes the connection. Unclaimed, it is owed as late-arrival debt from its
timeout on, for ten minutes: the host may still arrive.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from domain.limits import LATE_ARRIVAL_DEBT_RETENTION_MS
from domain.relay.assignment import Assignment, AssignmentEvent, Connection
from domain.relay.command import Command, LapsingConnections, Scan
from domain.relay.ledger import Ledger
from domain.relay.turn import ReadSet, Turn

# events


class ConnectionsLapsed(AssignmentEvent):
    """Reserved connections were not claimed in time and are owed as late-arrival debt."""

    topic: ClassVar[str] = "connections.lapsed"

    connections: tuple[int, ...]


class ConnectionsReleased(AssignmentEvent):
    """Outstanding connections stopped counting."""

    topic: ClassVar[str] = "connections.released"

    connections: tuple[int, ...]
    reason: Literal["observed", "duplicate_debt", "retired_debt"]


# evolve


def evolve_lapsed(before: Assignment, event: ConnectionsLapsed) -> Assignment:
    connections = dict(before.connections)
    for number in event.connections:
        connections[number] = replace(connections[number], state="late-arrival-debt")
    return replace(before, connections=connections)


def evolve_connections_released(before: Assignment, event: ConnectionsReleased) -> Assignment:
    kept = {k: v for k, v in before.connections.items() if k not in event.connections}
    return replace(before, connections=kept)


# commands


@dataclass(frozen=True, slots=True)
class LapseConnections(Command):
    """Turn timed-out reservations into debt, and retire debt after its retention."""

    def scan(self, read_set: ReadSet, now: int) -> Scan:
        return LapsingConnections(now, now - LATE_ARRIVAL_DEBT_RETENTION_MS)


# decide


def lapse_connections(turn: Turn, command: LapseConnections) -> int:
    """Answers how many hosts were settled."""
    for host in turn.found:
        held = turn.require_assignment(host)
        lapsed = tuple(
            number
            for number, it in held.connections.items()
            if it.state == "reserved" and it.timeout_at <= turn.now
        )
        if lapsed:
            turn.record(
                ConnectionsLapsed(
                    at=turn.now,
                    user_id=host.user_id,
                    relay_host_id=host.relay_host_id,
                    connections=lapsed,
                )
            )
        held = turn.require_assignment(host)
        retired = tuple(
            number
            for number, it in held.connections.items()
            if _unclaimed_debt(it) and it.timeout_at <= turn.now - LATE_ARRIVAL_DEBT_RETENTION_MS
        )
        _release(turn, held, retired, "retired_debt")
    return len(turn.found)


def observe_connections(turn: Turn, cell_id: str, inclusion_watermark: int) -> None:
    """Release what the cell's newest snapshot includes, and debt that is owed twice."""
    for host in turn.found:
        held = turn.require_assignment(host)
        here = {key: it for key, it in held.connections.items() if it.cell_id == cell_id}
        included = tuple(
            number
            for number, it in here.items()
            if it.state == "claimed"
            and it.inclusion_watermark is not None
            and it.inclusion_watermark <= inclusion_watermark
        )
        _release(turn, held, included, "observed")
        owed: dict[int, int] = {}
        duplicates = []
        for number, it in here.items():
            if _unclaimed_debt(it) and it.timeout_at <= turn.now:
                if it.epoch in owed:
                    duplicates.append(number)
                owed.setdefault(it.epoch, number)
        _release(turn, turn.require_assignment(host), tuple(duplicates), "duplicate_debt")


def _unclaimed_debt(connection: Connection) -> bool:
    return connection.state == "late-arrival-debt" and connection.claim_activity_id is None


def _release(
    turn: Turn,
    held: Assignment,
    numbers: tuple[int, ...],
    reason: Literal["observed", "duplicate_debt", "retired_debt"],
) -> None:
    if not numbers:
        return
    ledger = Ledger(turn)
    for number in numbers:
        ledger.connect(held.connections[number].cell_id, -1)
    turn.record(
        ConnectionsReleased(
            at=turn.now,
            user_id=held.user_id,
            relay_host_id=held.relay_host_id,
            shifts=ledger.shifts(),
            connections=numbers,
            reason=reason,
        )
    )
