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

CREATE TABLE projections (
    name     text   COLLATE "C" PRIMARY KEY,
    version  bigint NOT NULL,
    position bigint NOT NULL,
    phase    text   COLLATE "C" NOT NULL
);

CREATE TABLE tokens (
    token_sha256 bytea  PRIMARY KEY,
    token_id     text   COLLATE "C" NOT NULL UNIQUE,
    role         text   COLLATE "C" NOT NULL,
    bound_to     text   COLLATE "C",
    created_at   bigint NOT NULL,
    revoked_at   bigint
);
