"""A given server is checked before use; databases on any server are made alike."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest

from adapters.postgres.server import (
    Server,
    ServerUnavailable,
    check_server,
    check_settings,
    create_database,
    drop_database,
    open_server,
)
from adapters.postgres.unavailable import from_os_error, from_output

SAFE = {
    "server_version": "18.6",
    "server_version_num": "180006",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}


def test_a_full_disk_is_told_from_other_failures() -> None:
    output = "creating ...\ninitdb: error: could not write: No space left on device\nremoving"
    refused = from_output("no setup", output)
    assert refused.code == "disk_full"
    assert str(refused) == "no setup: initdb: error: could not write: No space left on device"
    assert from_os_error(Path("/data"), OSError(errno.ENOSPC, "full")).code == "disk_full"
    assert from_output("no start", "FATAL:  strange").code == "server_not_reachable"


def test_a_given_server_is_used_as_it_is(server: Server, tmp_path: Path) -> None:
    with open_server(server.dsn, tmp_path / "unused", allow_unsafe=True) as given:
        assert given == Server(server.dsn, embedded=False)
    assert not (tmp_path / "unused").exists()


def test_a_server_that_is_not_there_is_not_reachable(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerUnavailable) as refused,
        open_server(f"host={tmp_path} user=postgres", tmp_path),
    ):
        pass
    assert refused.value.code == "server_not_reachable"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("number", "accepted"), [("140019", False), ("150000", True)])
def test_servers_before_15_are_refused(number: str, accepted: bool) -> None:
    settings = SAFE | {"server_version_num": number}
    with nullcontext() if accepted else pytest.raises(ServerUnavailable) as refused:
        check_settings(settings, allow_unsafe=True)
    assert accepted or (refused is not None and refused.value.code == "server_too_old")


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_server_that_may_forget_is_refused_unless_told(name: str) -> None:
    check_settings(SAFE | {"synchronous_commit": "remote_apply"}, allow_unsafe=False)
    check_settings(SAFE | {name: "off"}, allow_unsafe=True)
    with pytest.raises(ServerUnavailable, match=name) as refused:
        check_settings(SAFE | {name: "off"}, allow_unsafe=False)
    assert refused.value.code == "durability_off"


def test_durability_turned_off_on_a_real_server_is_seen(server: Server, database: str) -> None:
    dsn = f"{database} options='-c synchronous_commit=off'"
    with pytest.raises(ServerUnavailable, match="synchronous_commit"):
        check_server(dsn, allow_unsafe=False)
    assert check_server(dsn, allow_unsafe=True)["synchronous_commit"] == "off"


def test_databases_are_made_in_utf8_by_code_point_and_dropped(server: Server) -> None:
    name = f"tenure_test_{os.getpid()}_Ö"
    dsn = create_database(server, name)
    connection = psycopg.connect(dsn)
    rows = connection.execute("SELECT w FROM unnest(ARRAY['ä', 'b', 'Z']) w ORDER BY w")
    assert [row[0] for row in rows] == ["Z", "b", "ä"]
    drop_database(server, name)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()
    drop_database(server, name)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)


@pytest.mark.parametrize("url", ["postgres//admin:s3cret@db/x", "host=db password=s3 cret"])
def test_an_unreadable_url_is_not_repeated(url: str) -> None:
    with pytest.raises(ServerUnavailable) as caught:
        check_server(url, allow_unsafe=True)
    assert "cret" not in str(caught.value)
