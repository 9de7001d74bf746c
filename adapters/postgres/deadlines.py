"""Deadlines for what the log tells of, where a restore of the log alone left none."""

from typing import Any

import psycopg

from domain.limits import ACTIVITY_LEASE_MS

FILL_LIVENESS = b"""
INSERT INTO assignment_liveness (
    user_id, relay_host_id, lease_expires_at, last_activity_at, next_deadline_at, deadlines
)
SELECT a.user_id, a.relay_host_id, %(expires_at)s, %(now)s, NULL, '{}'
FROM assignments a LEFT JOIN assignment_liveness l USING (user_id, relay_host_id)
WHERE l.user_id IS NULL
"""
FILL_DEADLINES = b"""
UPDATE assignment_liveness t
SET deadlines = t.deadlines || u.deadlines,
    next_deadline_at = least(t.next_deadline_at, %(expires_at)s)
FROM (
    SELECT a.user_id, a.relay_host_id, jsonb_object_agg(
        a.activity_id, jsonb_build_array(%(expires_at)s::bigint, %(now)s::bigint)
    ) AS deadlines
    FROM activity_leases a JOIN assignment_liveness l USING (user_id, relay_host_id)
    WHERE NOT l.deadlines ? a.activity_id
    GROUP BY a.user_id, a.relay_host_id
) u
WHERE (t.user_id, t.relay_host_id) = (u.user_id, u.relay_host_id)
"""


def fill_deadlines(connection: psycopg.Connection[Any], now: int) -> None:
    """Give what has no deadline a full lease from `now` (epoch ms); the writer lock is held.

    Late release is safe, early release is not.
    """
    told = {"expires_at": now + ACTIVITY_LEASE_MS, "now": now}
    connection.execute(FILL_LIVENESS, told)
    connection.execute(FILL_DEADLINES, told)
