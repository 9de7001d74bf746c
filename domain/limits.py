"""Every bound of the contract, named with its unit."""

from typing import Literal, TypeAlias

Region: TypeAlias = Literal["us-central1", "asia-east2"]

SAFE_INTEGER_MAX = 2**53 - 1
"""The largest integer that every client of the contract represents exactly."""

# Relay: leases and dormancy
ACTIVITY_LEASE_MS = 90_000
DORMANCY_MS = 86_400_000
CONTROL_PING_INTERVAL_MS = 15_000
CONTROL_RENEWAL_HORIZON_MS = ACTIVITY_LEASE_MS + 2 * CONTROL_PING_INTERVAL_MS
ACTIVITY_ID_LENGTH_MAX = 256
LEASES_PER_HOST_MAX = 1_024
"""The original has no such limit; each decision on a host looks through all of its leases."""

# Relay: a stranded host (a grant too old to be dialling, too young to be ordinary dormancy)
STRANDED_GRANT_AGE_MIN_MS = 60_000
STRANDED_ACTIVITY_AGE_MAX_MS = 900_000

# Relay: connections
REBIND_RESERVE_CONNECTIONS = 100
LATE_ARRIVAL_DEBT_RETENTION_MS = 600_000
CONNECTION_HARD_CAPS = (600, 1_000, 3_000)

# Relay: cells and regions
HEARTBEAT_TTL_MS = 45_000
REGIONS: tuple[Region, ...] = ("us-central1", "asia-east2")
DEFAULT_REGION: Region = "us-central1"
REGION_PROBE_ORIGINS_MAX = 2
REGION_PREFERENCE_RETENTION_MS = 30 * 86_400_000
CELLS_MAX = 128
CELL_CAPACITY_UNITS_MAX = 100_000
COHORT_PERCENT_MAX = 100
CANDIDATES_TOLD_MAX = 4
"""How many of the cells that could have taken a host its placement tells: the chosen one first."""

# Relay: work in one turn of the writer
SWEEP_HOSTS_MAX = max(CONNECTION_HARD_CAPS)
"""One heartbeat may have to settle every connection that its cell can hold."""
BULK_RENEWALS_MAX = 2_000
