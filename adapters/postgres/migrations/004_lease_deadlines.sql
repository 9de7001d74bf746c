-- A row for each lease's deadline: what a command costs must not grow with what its host holds.

CREATE TABLE lease_deadlines (
    user_id       text   COLLATE "C" NOT NULL,
    relay_host_id text   COLLATE "C" NOT NULL,
    activity_id   text   COLLATE "C" NOT NULL,
    expires_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    PRIMARY KEY (user_id, relay_host_id, activity_id)
) WITH (fillfactor = 50);

INSERT INTO lease_deadlines (user_id, relay_host_id, activity_id, expires_at, updated_at)
SELECT user_id, relay_host_id, key, (value ->> 0)::bigint, (value ->> 1)::bigint
FROM assignment_liveness, jsonb_each(deadlines);

ALTER TABLE assignment_liveness DROP COLUMN next_deadline_at, DROP COLUMN deadlines;
