"""Answers about cells, with their examples."""

from dataclasses import dataclass

from adapters.postgres.reads import Versioned
from domain.limits import REBIND_RESERVE_CONNECTIONS, Region
from domain.relay.cell import Admission
from domain.relay.headroom import has_headroom, live
from domain.relay.policy import Policy
from domain.relay.standing import Word, standing
from domain.relay.views import RegionOrigins


@dataclass(frozen=True, slots=True)
class CellRow:
    """A line of the operator's table. Units are request units."""

    cell_id: str
    version: int
    cell_url: str
    region: Region
    admission: Admission
    admission_changed_at: int
    capacity_units: int
    reserved_units: int
    free_units: int
    leased_units: int
    hard_cap_connections: int | None
    unobserved_bound_connections: int | None
    ordinary_connections_max: int | None
    enforced_connections: int | None
    expected_connections: int
    headroom: bool
    live: bool
    standing: Word
    standing_since: int | None
    cell_incarnation: str | None
    last_heartbeat_at: int | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """All cells by id."""

    cells: list[CellRow]


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions with a live general cell."""

    regions: list[RegionOrigins]


def row_of(versioned: Versioned, now: int, policy: Policy) -> CellRow:
    """A cell as the operator's table shows it at `now` (epoch ms)."""
    view = versioned.view
    cell, load, runtime = view.cell, view.load, view.runtime
    hard_cap, telemetry, heartbeat = cell.hard_cap_connections, runtime.telemetry, runtime.heartbeat
    stands = standing(cell, load, runtime, now, policy)
    return CellRow(
        cell_id=cell.cell_id,
        version=versioned.version,
        cell_url=cell.cell_url,
        region=cell.region,
        admission=cell.admission,
        admission_changed_at=cell.admission_changed_at,
        capacity_units=cell.capacity_units,
        reserved_units=load.reserved_units,
        free_units=max(0, cell.capacity_units - load.reserved_units),
        leased_units=load.leased_units,
        hard_cap_connections=hard_cap,
        unobserved_bound_connections=cell.unobserved_bound_connections,
        ordinary_connections_max=None
        if hard_cap is None
        else hard_cap - REBIND_RESERVE_CONNECTIONS,
        enforced_connections=telemetry.enforced_connections if telemetry else None,
        expected_connections=load.connections,
        headroom=has_headroom(cell, load, runtime, now, policy),
        live=live(runtime, now, policy),
        standing=stands.word,
        standing_since=stands.since,
        cell_incarnation=cell.cell_incarnation,
        last_heartbeat_at=heartbeat.last_heartbeat_at if heartbeat else None,
    )


FLEET = {
    "cells": [
        {
            "cell_id": "c-1",
            "version": 3,
            "cell_url": "https://c-1.example",
            "region": "us-central1",
            "admission": "general",
            "admission_changed_at": 1_754_000_000_000,
            "capacity_units": 500,
            "reserved_units": 131,
            "free_units": 369,
            "leased_units": 131,
            "hard_cap_connections": 1_000,
            "unobserved_bound_connections": 200,
            "ordinary_connections_max": 900,
            "enforced_connections": 95,
            "expected_connections": 4,
            "headroom": True,
            "live": True,
            "standing": "open",
            "standing_since": None,
            "cell_incarnation": "c-1-boot-7",
            "last_heartbeat_at": 1_754_000_030_000,
        }
    ]
}
STATUS = {
    "cell_id": "c-1",
    "cell_url": "https://c-1.example",
    "region": "us-central1",
    "enabled": True,
    "admission_state": "general",
    "capacity_requests": 500,
    "reserved_requests": 131,
    "assignments": 120,
    "activity_leases": 131,
    "activity_request_units": 131,
    "restart_blocking_activity_leases": 127,
    "restart_blocking_activity_request_units": 127,
    "restart_blocking_reserved_requests": 127,
    "outgoing_migrations": 0,
    "incoming_migrations": 0,
    "connection_capacity": None,
    "runtime": {
        "cell_url": "https://c-1.example",
        "cell_incarnation": "c-1-boot-7",
        "started_at": 1_754_000_000_000,
        "ready": True,
        "observed_requests": 120,
        "last_heartbeat_at": 1_754_000_030_000,
        "heartbeat_fresh": True,
        "regional_rehome_protocol": 1,
    },
}
CATALOG = {"regions": [{"region": "us-central1", "probe_origins": ["https://c-1.example"]}]}
RENEWED = {"renewed": 1, "refused": [{"index": 1, "code": "assignment_not_found"}]}
