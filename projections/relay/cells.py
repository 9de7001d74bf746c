"""Cells as configured and admitted, and whether the admission selector was opened."""

from typing import Any

from domain.relay.cell import (
    AdmissionSelectorOpened,
    Cell,
    CellAdmissionChanged,
    CellReconfigured,
    CellRegistered,
    CellStarted,
)
from projections.table import Projection, Rows, Table

CELLS = Table(
    "cells",
    1,
    {
        "cell_id": "text",
        "cell_url": "text",
        "region": "text",
        "capacity_units": "bigint",
        "hard_cap_connections": "bigint",
        "unobserved_bound_connections": "bigint",
        "admission": "text",
        "admission_changed_at": "bigint",
        "cell_incarnation": "text",
        "started_at": "bigint",
        "version": "bigint",
    },
)
SELECTOR = Table(
    "admission_selector", 1, {"selector_id": "text", "generation": "bigint", "version": "bigint"}
)


def cell_of(row: Any) -> Cell:
    """A row of the table as the rules see it."""
    return Cell(*row[:-1])


def _registered(event: CellRegistered, version: int, _: int, rows: Rows) -> None:
    rows.put(
        CELLS,
        event.cell_id,
        event.cell_url,
        event.region,
        event.capacity_units,
        event.hard_cap_connections,
        event.unobserved_bound_connections,
        event.admission,
        event.at,
        None,
        None,
        version,
    )


def _reconfigured(event: CellReconfigured, version: int, _: int, rows: Rows) -> None:
    rows.set(
        CELLS,
        (event.cell_id,),
        cell_url=event.cell_url,
        region=event.region,
        capacity_units=event.capacity_units,
        hard_cap_connections=event.hard_cap_connections,
        unobserved_bound_connections=event.unobserved_bound_connections,
        version=version,
    )


def _admission_changed(event: CellAdmissionChanged, version: int, _: int, rows: Rows) -> None:
    rows.set(
        CELLS,
        (event.cell_id,),
        admission=event.admission,
        admission_changed_at=event.at,
        version=version,
    )


def _started(event: CellStarted, version: int, _: int, rows: Rows) -> None:
    rows.set(
        CELLS,
        (event.cell_id,),
        cell_incarnation=event.cell_incarnation,
        started_at=event.started_at,
        version=version,
    )


def _opened(_event: AdmissionSelectorOpened, version: int, _: int, rows: Rows) -> None:
    rows.put(SELECTOR, "general", 0, version)


PROJECTION = Projection(
    "cells",
    1,
    (CELLS, SELECTOR),
    {
        CellRegistered: _registered,
        CellReconfigured: _reconfigured,
        CellAdmissionChanged: _admission_changed,
        CellStarted: _started,
        AdmissionSelectorOpened: _opened,
    },
)
