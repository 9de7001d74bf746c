"""What hosts do where: activity leases, and the controls that were announced.

When a lease ends is volatile and stands in `lease_deadlines`.
"""

from domain.relay.activity import ActivityAcquired, ActivityExpired, ActivityReleased
from domain.relay.control import ControlActivated
from domain.relay.placement import ControlRegranted, HostPlaced
from projections.table import Projection, Rows, Table

ACTIVITY_LEASES = Table(
    "activity_leases",
    3,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "activity_id": "text",
        "kind": "text",
        "cell_id": "text",
        "units": "bigint",
    },
)
CONTROLS = Table(
    "controls",
    3,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "activity_id": "text",
        "cell_id": "text",
        "cell_incarnation": "text",
        "epoch": "bigint",
        "generation": "bigint",
        "idle_regional_rehome": "boolean",
    },
)


def _placed(event: HostPlaced, _: int, __: int, rows: Rows) -> None:
    for activity_id in event.dropped_activity_ids:
        rows.drop(ACTIVITY_LEASES, event.user_id, event.relay_host_id, activity_id)
    _leased(event, _, __, rows)


def _leased(
    event: HostPlaced | ControlRegranted | ActivityAcquired, _: int, __: int, rows: Rows
) -> None:
    rows.put(ACTIVITY_LEASES, event.user_id, event.relay_host_id, event.activity_id, *event.lease)


def _ended(event: ActivityReleased | ActivityExpired, _: int, __: int, rows: Rows) -> None:
    rows.drop(ACTIVITY_LEASES, event.user_id, event.relay_host_id, event.activity_id)


def _activated(event: ControlActivated, _: int, __: int, rows: Rows) -> None:
    user_id, relay_host_id = event.user_id, event.relay_host_id
    for activity_id in event.superseded_activity_ids:
        rows.drop(ACTIVITY_LEASES, user_id, relay_host_id, activity_id)
    if event.renamed_from is not None:
        rows.drop(ACTIVITY_LEASES, user_id, relay_host_id, event.renamed_from)
    rows.put(ACTIVITY_LEASES, user_id, relay_host_id, event.activity_id, *event.lease)
    for activity_id in event.forgotten_controls:
        rows.drop(CONTROLS, user_id, relay_host_id, activity_id)
    rows.put(
        CONTROLS,
        user_id,
        relay_host_id,
        event.activity_id,
        event.cell_id,
        event.cell_incarnation,
        event.epoch,
        event.generation,
        event.idle_regional_rehome,
    )


PROJECTION = Projection(
    "activity_leases",
    1,
    (ACTIVITY_LEASES, CONTROLS),
    {
        HostPlaced: _placed,
        ControlRegranted: _leased,
        ActivityAcquired: _leased,
        ActivityReleased: _ended,
        ActivityExpired: _ended,
        ControlActivated: _activated,
    },
)
