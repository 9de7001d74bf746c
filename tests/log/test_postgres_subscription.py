"""A subscription on PostgreSQL outlives lost notifications and lost connections."""

from contextlib import closing

import psycopg
from eventsourcing.persistence import StoredEvent

from adapters.postgres.recorder import PostgresRecorder, PostgresSubscription
from tests.waiting import until


def event(version: int) -> StoredEvent:
    return StoredEvent("a", version, "thing.happened", b"{}")


def silence(database: str) -> None:
    """Make notifications get lost."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET search_path = public")
        connection.execute(
            "CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT'"
        )
        connection.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = "
            "public, pg_catalog', current_database()); END $$"
        )


def listeners(connection: psycopg.Connection[tuple[int]]) -> list[int]:
    rows = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'tenure-listen' "
        "AND datname = current_database() AND state = 'idle'"
    ).fetchall()
    return [pid for (pid,) in rows]


def test_a_lost_notification_only_costs_a_poll(database: str) -> None:
    silence(database)
    with (
        closing(PostgresRecorder(database)) as recorder,
        recorder.subscribe() as subscription,
    ):
        recorder.insert_events([event(1)])
        assert next(subscription).id == 1
        recorder.insert_events([event(2)])
        assert next(subscription).id == 2


def test_a_killed_listening_connection_is_opened_again(database: str) -> None:
    with (
        closing(PostgresRecorder(database)) as recorder,
        psycopg.connect(database, autocommit=True) as connection,
        recorder.subscribe() as subscription,
    ):
        until(lambda: len(listeners(connection)) == 1)
        (killed,) = listeners(connection)
        connection.execute("SELECT pg_terminate_backend(%s)", [killed])
        recorder.insert_events([event(1)])
        assert next(subscription).id == 1
        until(lambda: listeners(connection) not in ([], [killed]))
        recorder.insert_events([event(2)])
        assert next(subscription).id == 2
        assert isinstance(subscription, PostgresSubscription)
        assert subscription.healthy
