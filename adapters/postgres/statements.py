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
LIVENESS = """
SELECT t.user_id, t.relay_host_id, t.lease_expires_at, t.last_activity_at, t.next_deadline_at,
       t.deadlines::text
FROM unnest(%s::text[], %s::text[]) AS u(user_id, relay_host_id)
JOIN assignment_liveness t USING (user_id, relay_host_id)
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
SELECT user_id, relay_host_id FROM assignment_liveness WHERE next_deadline_at <= %(now)s
ORDER BY next_deadline_at LIMIT %(limit)s
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

_EXTEND = """
    UPDATE assignment_liveness t
    SET lease_expires_at = greatest(t.lease_expires_at, u.expires_at),
        last_activity_at = greatest(t.last_activity_at, %(now)s),
        deadlines = t.deadlines || jsonb_build_object(activity_id, jsonb_build_array(
            greatest(u.expires_at, (t.deadlines -> activity_id ->> 0)::bigint),
            greatest(%(now)s, (t.deadlines -> activity_id ->> 1)::bigint))),
        next_deadline_at = least(
            greatest(u.expires_at, (t.deadlines -> activity_id ->> 0)::bigint),
            (SELECT min((value ->> 0)::bigint) FROM jsonb_each(t.deadlines)
             WHERE key <> activity_id))
"""
"""Each host at most once a statement."""
_RENEWALS = """unnest(%(index)s::bigint[], %(user_id)s::text[], %(relay_host_id)s::text[],
    %(activity_id)s::text[], %(expires_at)s::bigint[])
    AS u(index, user_id, relay_host_id, activity_id, expires_at)"""
EXTEND = f"""{_EXTEND} FROM {_RENEWALS}
WHERE (t.user_id, t.relay_host_id) = (u.user_id, u.relay_host_id)
"""
RENEW = f"""
WITH item AS MATERIALIZED (
    SELECT index, activity_id, u.expires_at, v.ctid AS place,
           CASE WHEN a.cell_id IS NULL THEN 'assignment_not_found'
                WHEN a.cell_id <> %(cell_id)s THEN 'activity_cell_not_authoritative'
                WHEN l.cell_id IS NULL THEN 'control_activity_not_found'
                WHEN l.kind <> 'control' OR l.cell_id <> %(cell_id)s
                    THEN 'control_activity_moved'
           END AS code
    FROM {_RENEWALS}
    LEFT JOIN assignments a USING (user_id, relay_host_id)
    LEFT JOIN activity_leases l USING (user_id, relay_host_id, activity_id)
    LEFT JOIN assignment_liveness v USING (user_id, relay_host_id)
), renewed AS (
    {_EXTEND} FROM item u WHERE code IS NULL AND t.ctid = u.place
)
SELECT index, code FROM item WHERE code IS NOT NULL ORDER BY index
"""
"""Rows are found again by their place: the lock is held."""
