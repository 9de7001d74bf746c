"""The relay's rules, one table for commands and one for events."""

from collections.abc import Callable, Sequence
from typing import Any

from domain.events import Event
from domain.ids import HostId
from domain.refusals import Refusal
from domain.relay import activity, assign, connection, control, expiry, heartbeat, inventory
from domain.relay.assignment import Assignment, AssignmentEvent
from domain.relay.cell import CELL_EVENTS, AdmissionSelectorOpened
from domain.relay.command import Command
from domain.relay.placement import ControlRegranted, HostPlaced, evolve_placed, evolve_regranted
from domain.relay.turn import Decision, ReadSet, Turn

RULES: dict[type[Command], Callable[[Turn, Any], Any]] = {
    inventory.ReconcileCells: inventory.reconcile_cells,
    inventory.ConfigureCell: inventory.configure_cell,
    inventory.SetCellAdmission: inventory.set_cell_admission,
    heartbeat.RecordHeartbeat: heartbeat.record_heartbeat,
    heartbeat.RecordRehomeStatus: heartbeat.record_rehome_status,
    assign.Assign: assign.assign,
    assign.RebalanceDormant: assign.rebalance_dormant,
    activity.ChangeActivity: activity.change_activity,
    activity.AcquireActivity: activity.acquire_activity,
    activity.ReleaseActivity: activity.release_activity,
    activity.RenewControl: activity.renew_control,
    control.ActivateControl: control.activate_control,
    connection.LapseConnections: connection.lapse_connections,
    expiry.ReleaseExpiredLeases: expiry.release_expired_leases,
    expiry.ReleaseExpiredCounts: expiry.release_expired_counts,
    expiry.ForgetOldPreferences: expiry.forget_old_preferences,
}

_EVOLVE: dict[type[AssignmentEvent], Callable[[Any, Any], Assignment]] = {
    HostPlaced: evolve_placed,
    ControlRegranted: evolve_regranted,
    activity.ActivityAcquired: activity.evolve_acquired,
    activity.ActivityReleased: activity.evolve_ended,
    activity.ActivityExpired: activity.evolve_ended,
    activity.ActivityCounted: activity.evolve_counted,
    activity.CountsExpired: activity.evolve_counted,
    control.ControlActivated: control.evolve_activated,
    connection.ConnectionsLapsed: connection.evolve_lapsed,
    connection.ConnectionsReleased: connection.evolve_connections_released,
}

EVENTS: tuple[type[Event], ...] = (*_EVOLVE, *CELL_EVENTS, AdmissionSelectorOpened)


def evolve_assignment(before: Assignment | None, event: AssignmentEvent) -> Assignment:
    """The assignment after the event. Total over histories: never refuses."""
    return _EVOLVE[type(event)](before, event)


def decide(read_set: ReadSet, command: Command, now: int, found: Sequence[HostId] = ()) -> Decision:
    """What the command does at `now` (epoch ms), given what is true. Changes nothing itself.

    `found` are the hosts that the command's scan found.
    """
    turn = Turn(read_set, now, evolve_assignment, found)
    try:
        return turn.decided(RULES[type(command)](turn, command))
    except Refusal as refusal:
        return turn.refused(refusal)
