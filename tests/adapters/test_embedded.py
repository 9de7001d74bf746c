"""The embedded server: shared, stopped after its last user, started after any kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from adapters.postgres import postmaster
from adapters.postgres.server import ServerUnavailable, check_server, open_server
from tests.waiting import until

NOBODY = 65534
WAIT_SECONDS_MAX = 20
USER_PROGRAM = """
import sys
from pathlib import Path
from adapters.postgres.server import open_server
with open_server(None, Path(sys.argv[1])) as server:
    print(server.dsn, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def is_running(data_dir: Path) -> bool:
    return postmaster.find(data_dir / "postgres") is not None


def running(data_dir: Path) -> psutil.Process:
    process = postmaster.find(data_dir / "postgres")
    assert process is not None
    return process


def answers(dsn: str) -> bool:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


@contextmanager
def user_process(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the server until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", USER_PROGRAM, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "the user process did not get a server"
        try:
            yield process
        finally:
            process.kill()


def kill_reaper(data_dir: Path) -> None:
    users_file = str(data_dir / "users.lock")
    [reaper] = [
        process
        for process in psutil.process_iter(["cmdline"])
        if users_file in (process.info["cmdline"] or [])
    ]
    reaper.kill()
    until(lambda: not reaper.is_running() or reaper.status() == psutil.STATUS_ZOMBIE)


def test_the_embedded_server_runs_only_while_it_is_open(data_dir: Path) -> None:
    with open_server(None, data_dir) as server:
        assert server.embedded
        assert answers(server.dsn)
    assert not is_running(data_dir)


def test_the_embedded_server_is_durable_and_not_on_the_network(data_dir: Path) -> None:
    with open_server(None, data_dir) as server:
        settings = check_server(server.dsn, allow_unsafe=False)
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    assert settings["fsync"] == settings["full_page_writes"] == "on"
    assert settings["synchronous_commit"] == "on"
    assert settings["max_connections"] == "200"


def test_two_processes_share_one_server(data_dir: Path) -> None:
    with user_process(data_dir) as other:
        with open_server(None, data_dir) as server:
            before = running(data_dir)
            other.communicate()
            assert other.returncode == 0
            assert running(data_dir) == before
            assert answers(server.dsn)
        assert not is_running(data_dir)


def test_the_first_to_leave_does_not_stop_the_other(data_dir: Path) -> None:
    with user_process(data_dir) as other:
        with open_server(None, data_dir) as server:
            assert answers(server.dsn)
        assert answers(server.dsn)
        other.communicate()
    assert not is_running(data_dir)


def test_a_killed_user_neither_stops_the_server_nor_keeps_it_running(data_dir: Path) -> None:
    with user_process(data_dir) as other:
        with open_server(None, data_dir) as server:
            other.kill()
            other.wait()
            assert answers(server.dsn)
        assert not is_running(data_dir)


def test_the_server_stops_when_its_only_user_was_killed(data_dir: Path) -> None:
    with user_process(data_dir) as other:
        other.kill()
        other.wait()
        until(lambda: not is_running(data_dir))
        assert not is_running(data_dir)


def test_a_server_left_by_a_kill_of_user_and_reaper_is_taken_over(data_dir: Path) -> None:
    with user_process(data_dir) as other:
        left = running(data_dir)
        kill_reaper(data_dir)
        other.kill()
        other.wait()
    with open_server(None, data_dir) as server:
        assert running(data_dir) == left
        assert answers(server.dsn)
    assert not is_running(data_dir)


def test_what_was_committed_survives_a_kill_of_everything(data_dir: Path) -> None:
    with user_process(data_dir) as other:
        with open_server(None, data_dir) as server, psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        kill_reaper(data_dir)
        running(data_dir).kill()
        other.kill()
        other.wait()
    assert (data_dir / "postgres" / "postmaster.pid").exists()
    with open_server(None, data_dir) as server, psycopg.connect(server.dsn) as connection:
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
        connection.execute("DROP TABLE kept")


@pytest.mark.parametrize("recorded", [str(os.getpid()), "", "not a number"])
def test_a_stale_process_id_does_not_stop_the_next_start(data_dir: Path, recorded: str) -> None:
    with user_process(data_dir):
        kill_reaper(data_dir)
        running(data_dir).kill()
    cluster = data_dir / "postgres"
    for lock_file in (cluster / "postmaster.pid", cluster / ".s.PGSQL.5432.lock"):
        rest = lock_file.read_text().splitlines()[1:]
        lock_file.write_text("\n".join([recorded, *rest]) if recorded else "")
    with open_server(None, data_dir) as server:
        assert answers(server.dsn)


def test_a_server_that_died_is_started_again_for_the_next_user(data_dir: Path) -> None:
    with open_server(None, data_dir):
        running(data_dir).send_signal(signal.SIGKILL)
        with open_server(None, data_dir) as again:
            assert answers(again.dsn)


def test_an_interrupted_setup_is_done_again(tmp_path: Path) -> None:
    half = tmp_path / "postgres.new" / "base"
    half.mkdir(parents=True)
    with open_server(None, tmp_path) as server:
        assert answers(server.dsn)
    assert not half.exists()


@pytest.mark.parametrize("name", ["long" * 30, "with, comma and 'quotes'"])
def test_any_folder_name_is_fit_for_data(tmp_path: Path, name: str) -> None:
    with open_server(None, tmp_path / name) as server:
        assert answers(server.dsn)


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerUnavailable) as refused, open_server(None, tmp_path / "file"):
        pass
    assert refused.value.code == "data_directory_not_writable"
    assert str(tmp_path / "file") in str(refused.value)


def test_a_data_directory_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        an_ordinary_account(),
        pytest.raises(ServerUnavailable) as refused,
        open_server(None, tmp_path / "data"),
    ):
        pass
    assert refused.value.code == "data_directory_not_writable"


@contextmanager
def an_ordinary_account() -> Iterator[None]:
    """Permission bits do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
