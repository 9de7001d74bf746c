"""A host attaching to its cell: controls, what they supersede and what they claim (contract 3)."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from domain.ids import control_id, pending_control_id, require_activity_id
from domain.limits import ACTIVITY_LEASE_MS
from domain.refusals import ActivityLeaseShapeMismatch, WrongAssignment
from domain.relay.assignment import (
    REQUEST_UNITS,
    Assignment,
    Control,
    HeldEvent,
    Lease,
)
from domain.relay.command import HostCommand
from domain.relay.ledger import Ledger
from domain.relay.runtime import Deadline
from domain.relay.turn import Turn


class Claimed(NamedTuple):
    """A connection reservation taken over by its control."""

    number: int
    inclusion_watermark: int | None


# events


class ControlActivated(HeldEvent):
    """A host attached to its cell: a control of one generation is live and announced its skills.

    `renamed_from` is the pending lease it took over; `superseded_activity_ids` the older controls
    of the same cell it ended, after which the cell's units were recounted from its leases.
    """

    topic: ClassVar[str] = "control.activated"

    activity_id: str
    generation: int
    lease: Lease
    renamed_from: str | None
    superseded_activity_ids: tuple[str, ...]
    cell_incarnation: str
    idle_regional_rehome: bool
    forgotten_controls: tuple[str, ...]
    reclaimed_connections: tuple[int, ...]
    claimed_connection: Claimed | None


# evolve


def evolve_activated(before: Assignment, event: ControlActivated) -> Assignment:
    gone = {event.renamed_from, *event.superseded_activity_ids}
    leases = {key: lease for key, lease in before.leases.items() if key not in gone}
    leases[event.activity_id] = event.lease
    connections = dict(before.connections)
    for number in event.reclaimed_connections:
        connections[number] = replace(connections[number], claim_activity_id=event.activity_id)
    if event.claimed_connection:
        number, watermark = event.claimed_connection
        connections[number] = replace(
            connections[number],
            state="claimed",
            inclusion_watermark=watermark,
            claim_activity_id=event.activity_id,
        )
    controls = {k: v for k, v in before.controls.items() if k not in event.forgotten_controls}
    controls[event.activity_id] = Control(
        event.cell_id,
        event.cell_incarnation,
        event.epoch,
        event.generation,
        event.idle_regional_rehome,
    )
    return replace(
        before, counts=event.counts, leases=leases, connections=connections, controls=controls
    )


# commands


@dataclass(frozen=True, slots=True)
class ActivateControl(HostCommand):
    """Make the host's control of one generation live; answers its activity id.

    Refuses `wrong_assignment`, `invalid_activity_id`, `activity_lease_shape_mismatch`,
    `relay_capacity_exhausted`.
    """

    cell_id: str
    epoch: int
    generation: int
    idle_regional_rehome: bool = False
    cell_incarnation: str = ""
    inclusion_watermark: int | None = None


# decide


def activate_control(turn: Turn, command: ActivateControl) -> str:
    """Take over the pending lease, or reserve anew; end older controls of the same cell."""
    activity_id = require_activity_id(control_id(command.cell_id, command.generation))
    held = turn.assignment(command.host)
    if held is None or (held.cell_id, held.epoch) != (command.cell_id, command.epoch):
        raise WrongAssignment(cell_id=command.cell_id, epoch=command.epoch)
    activated = _activation(turn, held, command, activity_id)
    expires_at = turn.now + ACTIVITY_LEASE_MS
    turn.extend_liveness(command.host, expires_at)
    if activated is not None:
        turn.record(activated)
        for gone in (activated.renamed_from, *activated.superseded_activity_ids):
            if gone is not None:
                turn.touch_deadline(command.host, gone, None)
    turn.touch_deadline(command.host, activity_id, Deadline(expires_at, turn.now))
    return activity_id


def _activation(
    turn: Turn, held: Assignment, command: ActivateControl, activity_id: str
) -> ControlActivated | None:
    """What changes; None when the control is live already and announces nothing new."""
    ledger = Ledger(turn)
    lease, pending_id = held.leases.get(activity_id), None
    if lease is None:
        pending_id = pending_control_id(command.epoch)
        lease = held.leases.get(pending_id)
        if lease is None or lease.cell_id != command.cell_id:
            lease = pending_id = None
    superseded = _supersede(turn, held, command.cell_id, pending_id or activity_id, ledger)
    counts = held.counts
    if superseded:
        controls = [key for key, it in held.leases.items() if it.kind == "control"]
        counts = counts._replace(controls=len(controls) - len(superseded))
    if lease is None:
        lease = Lease("control", command.cell_id, REQUEST_UNITS["control"])
        ledger.reserve(lease.cell_id, lease.units)
        ledger.lease(lease.cell_id, lease.units)
        counts = counts.plus("control", 1)
    reclaimed, claimed = _claim(held, command, activity_id)
    gone = {pending_id, *superseded}
    live = {activity_id, *(key for key in held.leases if key not in gone)}
    activated = ControlActivated(
        at=turn.now,
        user_id=held.user_id,
        relay_host_id=held.relay_host_id,
        shifts=ledger.shifts(),
        cell_id=held.cell_id,
        epoch=held.epoch,
        counts=counts,
        activity_id=activity_id,
        generation=command.generation,
        lease=lease,
        renamed_from=pending_id,
        superseded_activity_ids=superseded,
        cell_incarnation=command.cell_incarnation,
        idle_regional_rehome=command.idle_regional_rehome and bool(command.cell_incarnation),
        forgotten_controls=tuple(key for key in held.controls if key not in live),
        reclaimed_connections=reclaimed,
        claimed_connection=claimed,
    )
    return None if evolve_activated(held, activated) == held else activated


def _supersede(
    turn: Turn, held: Assignment, cell_id: str, retained_id: str, ledger: Ledger
) -> tuple[str, ...]:
    """End the host's other controls on the cell, and recount the cell from its leases."""
    superseded = {
        key: lease
        for key, lease in held.leases.items()
        if lease.kind == "control" and lease.cell_id == cell_id and key != retained_id
    }
    for activity_id, lease in superseded.items():
        if lease.units != REQUEST_UNITS["control"]:
            raise ActivityLeaseShapeMismatch(activity_id=activity_id, units=lease.units)
        ledger.lease(cell_id, -lease.units)
    if superseded:
        ledger.recount(cell_id)
    return tuple(superseded)


def _claim(
    held: Assignment, command: ActivateControl, activity_id: str
) -> tuple[tuple[int, ...], Claimed | None]:
    """Which claimed connections the control takes over, and which unclaimed one it claims."""
    here = {
        number: it
        for number, it in held.connections.items()
        if (it.cell_id, it.epoch) == (command.cell_id, command.epoch)
    }
    reclaimed = tuple(
        number
        for number, it in here.items()
        if it.state == "claimed" and it.claim_activity_id != activity_id
    )
    if any(it.claim_activity_id is not None for it in here.values()):
        return reclaimed, None
    number = held.unclaimed_connection(command.cell_id, command.epoch)
    return reclaimed, None if number is None else Claimed(number, command.inclusion_watermark)
