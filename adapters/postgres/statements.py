"""The SQL of the log and of what the writer reads under its lock."""

from adapters.snapshots import SNAPSHOT_TOPIC

WRITER_LOCK = 0x74656E757265
"""The advisory lock that makes writers take turns, in this database."""

CHANNEL = "tenure_log"
"""Notified with the newest position on each commit that adds to the log."""

_MICROSECONDS = "(extract(epoch FROM recorded_at) * 1000000)::bigint"
ENTRY_COLUMNS = (
    "position, stream, version, topic, convert_from(state, 'UTF8') AS state, "
    f"{_MICROSECONDS} AS recorded_at, chain"
)
EVENT_COLUMNS = f"stream, version, topic, state, position, {_MICROSECONDS} AS recorded_at, chain"
"""In the order of the library's stored event, its state as bytes."""

LOCK = f"SELECT pg_advisory_xact_lock({WRITER_LOCK})"

APPEND = """
INSERT INTO log (position, stream, version, topic, state, recorded_at, chain)
SELECT position, stream, version, topic, convert_to(state, 'UTF8'),
       timestamptz 'epoch' + %s::bigint * interval '1 microsecond', decode(chain, 'hex')
FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[])
    AS u(position, stream, version, topic, state, chain)
"""
NOTIFY = f"SELECT pg_notify('{CHANNEL}', %s::text)"

AFTER = f"SELECT {ENTRY_COLUMNS} FROM log WHERE position > %s ORDER BY position LIMIT %s"
BEFORE_FIRST = f"SELECT {ENTRY_COLUMNS} FROM log WHERE position < 1 ORDER BY position LIMIT 1"
LAST = f"SELECT {ENTRY_COLUMNS} FROM log ORDER BY position DESC LIMIT 1"
CHAIN_AT = "SELECT chain FROM log WHERE position = %s"
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
TAKE_TURN = "SELECT nextval('writer_turns')"
TAKE_THIS_TURN = "SELECT take_turn(%s)"
OVERTAKEN = "TN001"
"""The SQLSTATE of a turn that another writer took."""

STREAMS = f"""
WITH taken AS MATERIALIZED (
    SELECT stream, version, state FROM snapshots
    WHERE stream = ANY(%s::text[]) AND fingerprint = %s
)
SELECT 0, stream, version, '{SNAPSHOT_TOPIC}', convert_from(state, 'UTF8'), 0, ''::bytea FROM taken
UNION ALL
SELECT e.* FROM unnest(%s::text[]) AS u(wanted)
LEFT JOIN taken ON taken.stream = u.wanted
CROSS JOIN LATERAL (
    SELECT {ENTRY_COLUMNS} FROM log
    WHERE log.stream = u.wanted AND log.version > coalesce(taken.version, 0)
    ORDER BY log.version
) e
"""
"""One statement, so that the entries begin where the snapshot ends whatever others write."""

TAKE_SNAPSHOTS = """
INSERT INTO snapshots (stream, version, fingerprint, state)
SELECT stream, version, fingerprint, convert_to(state, 'UTF8')
FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[])
    AS u(stream, version, fingerprint, state)
ON CONFLICT (stream) DO UPDATE SET
    version = excluded.version, fingerprint = excluded.fingerprint, state = excluded.state
"""

RUNTIMES = """
SELECT cell_id, observed_requests, heartbeat::text, telemetry::text,
       rehome_capability::text, rehome_safety::text
FROM cell_runtime
"""
_HOSTS = "unnest(%s::text[], %s::text[]) AS u(user_id, relay_host_id)"
LIVENESS = f"""
SELECT t.user_id, t.relay_host_id, t.lease_expires_at, t.last_activity_at
FROM {_HOSTS} JOIN assignment_liveness t USING (user_id, relay_host_id)
"""
DEADLINES = f"""
SELECT t.user_id, t.relay_host_id, t.activity_id, t.expires_at, t.updated_at
FROM {_HOSTS} JOIN lease_deadlines t USING (user_id, relay_host_id)
"""

RESULTS = (
    "SELECT key, fingerprint, answer, position, stored_at FROM command_results "
    "WHERE key = ANY(%s::text[])"
)
KEEP_RESULTS = """
INSERT INTO command_results (key, fingerprint, answer, position, stored_at)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[])
ON CONFLICT (key) DO UPDATE SET
    fingerprint = excluded.fingerprint, answer = excluded.answer,
    position = excluded.position, stored_at = excluded.stored_at
"""
"""Under the lock only a refusal that invites to try again, kept by earlier code, is in the way."""
FORGET_RESULTS = """
DELETE FROM command_results WHERE key IN (
    SELECT key FROM command_results WHERE stored_at < %s ORDER BY stored_at LIMIT %s
)
"""

CELLS = "SELECT * FROM cells"
LOADS = "SELECT * FROM cell_reservations"
SELECTORS = "SELECT * FROM admission_selector"

OBSERVED_CONNECTIONS = """
SELECT user_id, relay_host_id FROM connection_reservations
WHERE cell_id = %(cell_id)s AND state = 'claimed'
  AND inclusion_watermark <= %(inclusion_watermark)s
UNION
SELECT user_id, relay_host_id FROM connection_reservations
WHERE cell_id = %(cell_id)s AND state = 'late-arrival-debt' AND timeout_at <= %(now)s
GROUP BY user_id, relay_host_id, epoch HAVING count(*) > 1
LIMIT %(limit)s
"""
LAPSING_CONNECTIONS = """
SELECT DISTINCT user_id, relay_host_id FROM connection_reservations
WHERE state = 'reserved' AND timeout_at <= %(now)s
   OR state = 'late-arrival-debt' AND timeout_at <= %(retired_at)s
LIMIT %(limit)s
"""
EXPIRED_LEASES = """
SELECT user_id, relay_host_id FROM lease_deadlines WHERE expires_at <= %(now)s
GROUP BY user_id, relay_host_id ORDER BY min(expires_at) LIMIT %(limit)s
"""
EXPIRED_COUNTS = """
SELECT user_id, relay_host_id FROM assignment_liveness
JOIN assignments USING (user_id, relay_host_id)
WHERE lease_expires_at <= %(now)s
  AND controls + splices + invites + installs + confirmations + migrations > 0
LIMIT %(limit)s
"""
OLD_PREFERENCES = """
SELECT user_id, relay_host_id FROM region_preferences WHERE observed_at < %(before)s
LIMIT %(limit)s
"""

_RENEWALS = """unnest(%(index)s::bigint[], %(user_id)s::text[], %(relay_host_id)s::text[],
    %(activity_id)s::text[], %(expires_at)s::bigint[])
    AS u(index, user_id, relay_host_id, activity_id, expires_at)"""
_EXTENDED = """
host AS (
    UPDATE assignment_liveness t
    SET lease_expires_at = greatest(t.lease_expires_at, u.expires_at),
        last_activity_at = greatest(t.last_activity_at, %(now)s)
    FROM item u WHERE (t.user_id, t.relay_host_id) = (u.user_id, u.relay_host_id)
), lease AS (
    INSERT INTO lease_deadlines AS t (user_id, relay_host_id, activity_id, expires_at, updated_at)
    SELECT user_id, relay_host_id, activity_id, expires_at, %(now)s FROM item
    ON CONFLICT (user_id, relay_host_id, activity_id) DO UPDATE
    SET expires_at = greatest(t.expires_at, excluded.expires_at),
        updated_at = greatest(t.updated_at, excluded.updated_at)
)
"""
"""Each host at most once a statement."""
EXTEND = f"""
WITH item AS MATERIALIZED (SELECT * FROM {_RENEWALS}), {_EXTENDED}
SELECT
"""
RENEW = f"""
WITH judged AS MATERIALIZED (
    SELECT index, user_id, relay_host_id, activity_id, u.expires_at,
           CASE WHEN a.cell_id IS NULL THEN 'assignment_not_found'
                WHEN a.cell_id <> %(cell_id)s THEN 'activity_cell_not_authoritative'
                WHEN l.cell_id IS NULL THEN 'control_activity_not_found'
                WHEN l.kind <> 'control' OR l.cell_id <> %(cell_id)s
                    THEN 'control_activity_moved'
           END AS code
    FROM {_RENEWALS}
    LEFT JOIN assignments a USING (user_id, relay_host_id)
    LEFT JOIN activity_leases l USING (user_id, relay_host_id, activity_id)
), item AS MATERIALIZED (SELECT * FROM judged WHERE code IS NULL), {_EXTENDED}
SELECT index, code FROM judged WHERE code IS NOT NULL ORDER BY index
"""
