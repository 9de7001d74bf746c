-- The log, and what the writer keeps beside it in the same transactions.

CREATE TABLE log (
    position    bigint      NOT NULL,
    stream      text        COLLATE "C" NOT NULL,
    version     bigint      NOT NULL,
    topic       text        COLLATE "C" NOT NULL,
    state       bytea       NOT NULL,
    recorded_at timestamptz NOT NULL,
    chain       bytea       NOT NULL,
    PRIMARY KEY (stream, version)
);
CREATE UNIQUE INDEX log_position ON log (position);

CREATE TABLE snapshots (
    stream      text   COLLATE "C" PRIMARY KEY,
    version     bigint NOT NULL,
    fingerprint text   COLLATE "C" NOT NULL,
    state       bytea  NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE command_results (
    key         text   COLLATE "C" PRIMARY KEY,
    fingerprint text   COLLATE "C" NOT NULL,
    answer      text   NOT NULL,
    position    bigint NOT NULL,
    stored_at   bigint NOT NULL
);
CREATE INDEX command_results_stored_at ON command_results (stored_at);

-- Which fold wrote a projection's tables, by role: live, rebuilt (being made), previous (kept).
CREATE TABLE projections (
    name     text   COLLATE "C" NOT NULL,
    role     text   COLLATE "C" NOT NULL CHECK (role IN ('live', 'rebuilt', 'previous')),
    version  bigint NOT NULL,
    code     text   COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (name, role)
);

CREATE TABLE tokens (
    token_sha256 bytea  PRIMARY KEY,
    token_id     text   COLLATE "C" NOT NULL UNIQUE,
    role         text   COLLATE "C" NOT NULL,
    bound_to     text   COLLATE "C",
    created_at   bigint NOT NULL,
    revoked_at   bigint
);

-- Every writer takes the next turn while it holds the writer lock. A writer that finds its own
-- number knows that nobody else wrote since its last turn, and that what it decided ahead stands.
CREATE SEQUENCE writer_turns;

CREATE FUNCTION take_turn(expected bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('writer_turns') <> expected THEN
        RAISE EXCEPTION 'another writer had a turn' USING ERRCODE = 'TN001';
    END IF;
    RETURN expected;
END
$$;
