"""Bodies and answers about cells."""

from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, model_validator
from pydantic.json_schema import WithJsonSchema

from app.http.models import (
    ActivityId,
    CellId,
    Count,
    EpochMs,
    Form,
    Incarnation,
    RelayHostId,
    Url,
    UserId,
    examples,
    one_of,
)
from domain.limits import (
    BULK_RENEWALS_MAX,
    CELL_CAPACITY_UNITS_MAX,
    CELLS_MAX,
    CONNECTION_HARD_CAPS,
    DEFAULT_REGION,
    REBIND_RESERVE_CONNECTIONS,
    Region,
)
from domain.relay.cell import Admission, admission_of
from domain.relay.heartbeat import NO_CONNECTIONS, ConnectionReport, RecordHeartbeat
from domain.relay.inventory import CellSettings
from domain.relay.renewals import Renewal

Capacity: TypeAlias = Annotated[int, Field(ge=1, le=CELL_CAPACITY_UNITS_MAX)]


def _limit_schema(hard_cap: int) -> JsonValue:
    unobserved_max = hard_cap - REBIND_RESERVE_CONNECTIONS - 1
    return {
        "properties": {
            "hard_cap_connections": {"const": hard_cap},
            "unobserved_bound_connections": {"maximum": unobserved_max},
        }
    }


class ConnectionLimit(Form):
    """How many connections a cell may have, and how many of them it may not have told yet."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_limit_schema(cap) for cap in CONNECTION_HARD_CAPS]}
    )

    hard_cap_connections: Annotated[
        int,
        one_of(*CONNECTION_HARD_CAPS),
        WithJsonSchema({"type": "integer", "enum": list(CONNECTION_HARD_CAPS)}),
    ]
    unobserved_bound_connections: Annotated[int, Field(ge=0, le=max(CONNECTION_HARD_CAPS))]

    @model_validator(mode="after")
    def _leaves_room(self) -> "ConnectionLimit":
        ordinary = self.hard_cap_connections - REBIND_RESERVE_CONNECTIONS
        if self.unobserved_bound_connections >= ordinary:
            raise ValueError(f"unobserved_bound_connections must be below {ordinary}")
        return self


_CELL: dict[str, JsonValue] = {
    "cell_url": "https://c-1.example",
    "capacity_units": 500,
    "region": "us-central1",
    "connection_limit": {"hard_cap_connections": 1_000, "unobserved_bound_connections": 200},
}


class CellForm(Form):
    """What a cell is and may hold."""

    cell_url: Url
    capacity_units: Capacity
    region: Region = DEFAULT_REGION
    connection_limit: ConnectionLimit | None = None

    def settings(self, cell_id: str, *, initially_enabled: bool = True) -> CellSettings:
        """As the rules take it."""
        limit = self.connection_limit
        return CellSettings(
            cell_id,
            self.cell_url,
            self.capacity_units,
            self.region,
            initially_enabled,
            limit.hard_cap_connections if limit else None,
            limit.unobserved_bound_connections if limit else None,
        )


class InventoryCell(CellForm):
    """A cell of the inventory."""

    cell_id: CellId
    initially_enabled: bool = True


class InventoryForm(Form):
    """The fleet as it should be."""

    model_config = examples({"cells": [{"cell_id": "c-1", **_CELL}], "disable_missing": True})

    cells: Annotated[tuple[InventoryCell, ...], Field(max_length=CELLS_MAX)]
    disable_missing: bool = True


class ConfigurationForm(CellForm):
    """All settings of one cell."""

    model_config = examples({**_CELL, "admission": "general"})

    admission: Admission


class AdmissionForm(Form):
    """Whom the cell admits."""

    model_config = examples({"admission": "existing-only"})

    admission: Admission


class EnabledForm(Form):
    """The older flag: general, or existing-only."""

    model_config = examples({"enabled": False})

    enabled: bool

    @property
    def admission(self) -> Admission:
        return admission_of(self.enabled)


class ConnectionReportForm(Form):
    """The connections that a limited cell reports; a cell without a limit reports none."""

    total_connections: Count | None = None
    in_flight_connections: Count | None = None
    reserved_connections: Count | None = None
    enforced_connections: Count | None = None
    inclusion_watermark: Count | None = None
    hard_cap_connections: Count | None = None
    unobserved_bound_connections: Count | None = None


class HeartbeatForm(Form):
    """What a cell says of itself."""

    model_config = examples(
        {
            "cell_url": "https://c-1.example",
            "cell_incarnation": "c-1-boot-7",
            "started_at": 1_754_000_000_000,
            "ready": True,
            "observed_requests": 120,
            "region": "us-central1",
            "connections": {
                "total_connections": 90,
                "in_flight_connections": 2,
                "reserved_connections": 3,
                "enforced_connections": 95,
                "inclusion_watermark": 4_711,
                "hard_cap_connections": 1_000,
                "unobserved_bound_connections": 200,
            },
        }
    )

    cell_url: Url
    cell_incarnation: Incarnation
    started_at: EpochMs
    ready: bool
    observed_requests: Count
    region: Region = DEFAULT_REGION
    connections: ConnectionReportForm | None = None

    def command(self, cell_id: str) -> RecordHeartbeat:
        told = self.connections
        return RecordHeartbeat(
            cell_id,
            self.cell_url,
            self.cell_incarnation,
            self.started_at,
            self.ready,
            self.observed_requests,
            self.region,
            ConnectionReport(**told.model_dump()) if told else NO_CONNECTIONS,
        )


class RehomeStatusForm(Form):
    """Which rehome protocol a cell speaks, and its own measure of its health."""

    model_config = examples(
        {
            "cell_incarnation": "c-1-boot-7",
            "regional_rehome_protocol": 1,
            "observed_at": 1_754_000_030_000,
            "sql_failures": 0,
            "reconnects": 1,
            "control_activity_recovery_failures": 0,
            "database_pool_waiting": 0,
            "database_pool_waiters_max": 2,
            "database_pool_wait_ms_max": 11,
        }
    )

    cell_incarnation: Incarnation
    regional_rehome_protocol: Count
    observed_at: EpochMs
    sql_failures: Count
    reconnects: Count
    control_activity_recovery_failures: Count
    database_pool_waiting: Count
    database_pool_waiters_max: Count
    database_pool_wait_ms_max: Count


class RenewalForm(Form):
    """One control to extend."""

    user_id: UserId
    relay_host_id: RelayHostId
    activity_id: ActivityId
    expires_at: EpochMs

    def renewal(self) -> Renewal:
        return Renewal(self.user_id, self.relay_host_id, self.activity_id, self.expires_at)


class RenewalsForm(Form):
    """Controls of one cell to extend."""

    model_config = examples(
        {
            "items": [
                {
                    "user_id": "u-17",
                    "relay_host_id": "desktop-1",
                    "activity_id": "control:c-1:3",
                    "expires_at": 1_754_000_090_000,
                }
            ]
        }
    )

    items: Annotated[tuple[RenewalForm, ...], Field(max_length=BULK_RENEWALS_MAX)]
