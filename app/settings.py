"""What an operator may set, from the environment (`TENURE_…`) or the command line."""

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.logs import LogFormat
from domain.limits import COHORT_PERCENT_MAX, HEARTBEAT_TTL_MS
from domain.relay.policy import Policy

KIB = 1_024


class Settings(BaseSettings):
    """Every setting has a bound and a default that serves a single machine."""

    model_config = SettingsConfigDict(env_prefix="TENURE_", env_ignore_empty=True, frozen=True)

    database_url: str | None = Field(default=None, max_length=2_048, repr=False)
    """A PostgreSQL to use; without one an embedded server runs in `data_dir`."""
    database_connections_max: int = Field(default=8, ge=1, le=100)
    """Connections for reading; the writer has two besides, the tail and the sweeps one each."""
    data_dir: Path = Path(".tenure")
    allow_unsafe_durability: bool = False

    host: str = Field(default="127.0.0.1", min_length=1, max_length=253)
    port: int = Field(default=8_420, ge=0, le=65_535)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: LogFormat = "auto"
    """JSON lines or lines for people; `auto` asks whether standard error is a terminal."""
    body_bytes_max: int = Field(default=64 * KIB, ge=KIB, le=16 * KIB * KIB)
    inventory_body_bytes_max: int = Field(default=512 * KIB, ge=KIB, le=16 * KIB * KIB)
    batch_body_bytes_max: int = Field(default=KIB * KIB, ge=KIB, le=16 * KIB * KIB)
    renewals_body_bytes_max: int = Field(default=KIB * KIB, ge=KIB, le=16 * KIB * KIB)

    own_processor: bool = True
    """Keep to one processor that no other service of `data_dir` has; see `app/processor.py`."""

    clock: Literal["system", "virtual"] = "system"
    require_live_cells: bool = True
    heartbeat_ttl_ms: int = Field(default=HEARTBEAT_TTL_MS, ge=1_000, le=3_600_000)
    regional_rehome_cohort_percent: int = Field(default=0, ge=0, le=COHORT_PERCENT_MAX)
    sweeps: bool = True
    sweep_interval_seconds: float = Field(default=30.0, ge=0.1, le=3_600.0)

    @property
    def policy(self) -> Policy:
        """The part of the settings that the rules read."""
        return Policy(
            require_live_cells=self.require_live_cells,
            heartbeat_ttl_ms=self.heartbeat_ttl_ms,
            regional_rehome_cohort_percent=self.regional_rehome_cohort_percent,
        )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
