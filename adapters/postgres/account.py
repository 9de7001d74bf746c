"""The system account that the embedded PostgreSQL runs as: it refuses to run as root."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from adapters.postgres.unavailable import DATA_DIRECTORY_NOT_WRITABLE, ServerUnavailable

ACCOUNTS_FOR_ROOT = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """User and group of the server process, when this process is root."""

    uid: int
    gid: int

    def may_pass(self, folder: os.stat_result) -> bool:
        """Whether this account can go through a folder with these owners and permissions."""
        if folder.st_uid == self.uid:
            return bool(folder.st_mode & stat.S_IXUSR)
        if folder.st_gid == self.gid:
            return bool(folder.st_mode & stat.S_IXGRP)
        return bool(folder.st_mode & stat.S_IXOTH)


def account_for(data_dir: Path, cluster: Path) -> Account | None:
    """The account to run as; None means as this process, which is not root.

    Root runs the server as the owner of the data, so that owner can use it later without root.
    """
    if os.geteuid() != 0:
        return None
    if cluster.is_dir() and cluster.stat().st_uid != 0:
        return Account(cluster.stat().st_uid, cluster.stat().st_gid)
    owner = data_dir.stat()
    if owner.st_uid != 0 and any(entry.pw_uid == owner.st_uid for entry in pwd.getpwall()):
        return Account(owner.st_uid, owner.st_gid)
    for name in ACCOUNTS_FOR_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise ServerUnavailable(
        DATA_DIRECTORY_NOT_WRITABLE,
        f"PostgreSQL does not run as root and there is no account {ACCOUNTS_FOR_ROOT} to use",
    )


def let_pass(account: Account, path: Path) -> None:
    """Let the account go through (not list or read) the folders above `path`."""
    for folder in path.parents:
        found = folder.stat()
        if not account.may_pass(found):
            folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXOTH)


def let_read(path: Path) -> None:
    """Let every account read a folder's files: an install under a strict umask forbids it."""
    for entry in (path, *path.rglob("*")):
        mode = stat.S_IMODE(entry.stat().st_mode)
        execute = stat.S_IXOTH if mode & stat.S_IXUSR else 0
        entry.chmod(mode | stat.S_IROTH | execute)
