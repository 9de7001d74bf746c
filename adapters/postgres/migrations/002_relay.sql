-- The relay's projections (rebuilt from the log at any time) and its volatile rows (never rebuilt).

CREATE TABLE cells (
    cell_id                      text COLLATE "C" PRIMARY KEY,
    cell_url                     text COLLATE "C" NOT NULL,
    region                       text COLLATE "C" NOT NULL,
    capacity_units               bigint NOT NULL,
    hard_cap_connections         bigint,
    unobserved_bound_connections bigint,
    admission                    text COLLATE "C" NOT NULL,
    admission_changed_at         bigint NOT NULL,
    cell_incarnation             text COLLATE "C",
    started_at                   bigint,
    version                      bigint NOT NULL
);

CREATE TABLE admission_selector (
    selector_id text COLLATE "C" PRIMARY KEY,
    generation  bigint NOT NULL,
    version     bigint NOT NULL
);

CREATE TABLE cell_reservations (
    cell_id        text COLLATE "C" PRIMARY KEY,
    reserved_units bigint NOT NULL CHECK (reserved_units >= 0),
    leased_units   bigint NOT NULL,
    connections    bigint NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE assignments (
    user_id       text COLLATE "C" NOT NULL,
    relay_host_id text COLLATE "C" NOT NULL,
    cell_id       text COLLATE "C" NOT NULL,
    epoch         bigint NOT NULL,
    controls      bigint NOT NULL,
    splices       bigint NOT NULL,
    invites       bigint NOT NULL,
    installs      bigint NOT NULL,
    confirmations bigint NOT NULL,
    migrations    bigint NOT NULL,
    PRIMARY KEY (user_id, relay_host_id)
) WITH (fillfactor = 70);

CREATE TABLE activity_leases (
    user_id       text COLLATE "C" NOT NULL,
    relay_host_id text COLLATE "C" NOT NULL,
    activity_id   text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    cell_id       text COLLATE "C" NOT NULL,
    units         bigint NOT NULL,
    PRIMARY KEY (user_id, relay_host_id, activity_id)
) WITH (fillfactor = 70);

CREATE TABLE controls (
    user_id              text COLLATE "C" NOT NULL,
    relay_host_id        text COLLATE "C" NOT NULL,
    activity_id          text COLLATE "C" NOT NULL,
    cell_id              text COLLATE "C" NOT NULL,
    cell_incarnation     text COLLATE "C" NOT NULL,
    epoch                bigint NOT NULL,
    generation           bigint NOT NULL,
    idle_regional_rehome boolean NOT NULL,
    PRIMARY KEY (user_id, relay_host_id, activity_id)
);

CREATE TABLE connection_reservations (
    user_id             text COLLATE "C" NOT NULL,
    relay_host_id       text COLLATE "C" NOT NULL,
    number              bigint NOT NULL,
    opened_position     bigint NOT NULL,
    cell_id             text COLLATE "C" NOT NULL,
    epoch               bigint NOT NULL,
    state               text COLLATE "C" NOT NULL,
    inclusion_watermark bigint,
    claim_activity_id   text COLLATE "C",
    opened_at           bigint NOT NULL,
    timeout_at          bigint NOT NULL,
    claimed_at          bigint,
    released_at         bigint,
    PRIMARY KEY (user_id, relay_host_id, number)
);
CREATE INDEX connection_reservations_outstanding
    ON connection_reservations (cell_id, state) WHERE state <> 'released';

-- Volatile. Deadlines have no index: it would halve the rate of renewals, and a full scan is cheap.

CREATE TABLE cell_runtime (
    cell_id           text COLLATE "C" PRIMARY KEY,
    observed_requests bigint NOT NULL,
    heartbeat         jsonb,
    telemetry         jsonb,
    rehome_capability jsonb,
    rehome_safety     jsonb
) WITH (fillfactor = 20);

CREATE TABLE assignment_liveness (
    user_id          text COLLATE "C" NOT NULL,
    relay_host_id    text COLLATE "C" NOT NULL,
    lease_expires_at bigint NOT NULL,
    last_activity_at bigint NOT NULL,
    next_deadline_at bigint,
    deadlines        jsonb NOT NULL,
    PRIMARY KEY (user_id, relay_host_id)
) WITH (fillfactor = 50);

CREATE TABLE region_preferences (
    user_id          text COLLATE "C" NOT NULL,
    relay_host_id    text COLLATE "C" NOT NULL,
    preferred_region text COLLATE "C" NOT NULL,
    observed_at      bigint NOT NULL,
    PRIMARY KEY (user_id, relay_host_id)
) WITH (fillfactor = 80);
