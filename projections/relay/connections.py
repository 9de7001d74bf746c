"""Connection reservations on limited cells, outstanding and released, in order of creation."""

from domain.relay.connection import ConnectionsLapsed, ConnectionsReleased
from domain.relay.control import ControlActivated
from domain.relay.placement import ControlRegranted, HostPlaced
from projections.table import Projection, Rows, Table

CONNECTION_RESERVATIONS = Table(
    "connection_reservations",
    3,
    {
        "user_id": "text",
        "relay_host_id": "text",
        "number": "bigint",
        "opened_position": "bigint",
        "cell_id": "text",
        "epoch": "bigint",
        "state": "text",
        "inclusion_watermark": "bigint",
        "claim_activity_id": "text",
        "opened_at": "bigint",
        "timeout_at": "bigint",
        "claimed_at": "bigint",
        "released_at": "bigint",
    },
)


def _granted(event: HostPlaced | ControlRegranted, _: int, position: int, rows: Rows) -> None:
    if isinstance(event, HostPlaced):
        for number in event.released_connections:
            _release(event, number, rows)
    if event.connection is not None:
        rows.put(
            CONNECTION_RESERVATIONS,
            event.user_id,
            event.relay_host_id,
            event.connection.number,
            position,
            event.cell_id,
            event.epoch,
            "reserved",
            None,
            None,
            event.at,
            event.connection.timeout_at,
            None,
            None,
        )


def _activated(event: ControlActivated, _: int, __: int, rows: Rows) -> None:
    host = (event.user_id, event.relay_host_id)
    for number in event.reclaimed_connections:
        rows.set(CONNECTION_RESERVATIONS, (*host, number), claim_activity_id=event.activity_id)
    if event.claimed_connection is not None:
        rows.set(
            CONNECTION_RESERVATIONS,
            (*host, event.claimed_connection.number),
            state="claimed",
            inclusion_watermark=event.claimed_connection.inclusion_watermark,
            claim_activity_id=event.activity_id,
            claimed_at=event.at,
        )


def _lapsed(event: ConnectionsLapsed, _: int, __: int, rows: Rows) -> None:
    for number in event.connections:
        key = (event.user_id, event.relay_host_id, number)
        rows.set(CONNECTION_RESERVATIONS, key, state="late-arrival-debt")


def _released(event: ConnectionsReleased, _: int, __: int, rows: Rows) -> None:
    for number in event.connections:
        _release(event, number, rows)


def _release(event: HostPlaced | ConnectionsReleased, number: int, rows: Rows) -> None:
    key = (event.user_id, event.relay_host_id, number)
    rows.set(CONNECTION_RESERVATIONS, key, state="released", released_at=event.at)


PROJECTION = Projection(
    "connection_reservations",
    1,
    (CONNECTION_RESERVATIONS,),
    {
        HostPlaced: _granted,
        ControlRegranted: _granted,
        ControlActivated: _activated,
        ConnectionsLapsed: _lapsed,
        ConnectionsReleased: _released,
    },
)
