"""Deadlines for what the log tells of, where a restore of the log alone left none."""

from typing import Any

import psycopg

from domain.limits import ACTIVITY_LEASE_MS

FILL_LIVENESS = b"""
INSERT INTO assignment_liveness (user_id, relay_host_id, lease_expires_at, last_activity_at)
SELECT a.user_id, a.relay_host_id, %(expires_at)s, %(now)s
FROM assignments a LEFT JOIN assignment_liveness l USING (user_id, relay_host_id)
WHERE l.user_id IS NULL
"""
FILL_DEADLINES = b"""
INSERT INTO lease_deadlines (user_id, relay_host_id, activity_id, expires_at, updated_at)
SELECT a.user_id, a.relay_host_id, a.activity_id, %(expires_at)s, %(now)s
FROM activity_leases a LEFT JOIN lease_deadlines l USING (user_id, relay_host_id, activity_id)
WHERE l.user_id IS NULL
"""


def fill_deadlines(connection: psycopg.Connection[Any], now: int) -> None:
    """Give what has no deadline a full lease from `now` (epoch ms); the writer lock is held.

    Late release is safe, early release is not.
    """
    told = {"expires_at": now + ACTIVITY_LEASE_MS, "now": now}
    connection.execute(FILL_LIVENESS, told)
    connection.execute(FILL_DEADLINES, told)
