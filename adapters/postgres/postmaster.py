"""The running server of a data directory: find it, stop it, stop it after its last user.

Also run as a program, the reaper, by file path in a process of its own: it imports none of ours.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

import psutil

FAST_STOP_SECONDS = 60
IMMEDIATE_STOP_SECONDS = 10
POLL_SECONDS = 0.01


def recorded_pid(lock_file: Path) -> int | None:
    """The process id in a PostgreSQL lock file; None when there is none to read."""
    try:
        return abs(int(lock_file.read_text().split("\n", 1)[0]))
    except (OSError, ValueError):
        return None


def find(cluster: Path) -> psutil.Process | None:
    """The live postmaster of this data directory.

    The command line is compared, as a recorded process id may belong to another program by now.
    """
    pid = recorded_pid(cluster / "postmaster.pid")
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        command = process.cmdline()
    except psutil.Error:
        return None
    is_ours = command and Path(command[0]).name == "postgres" and str(cluster) in command
    return process if is_ours else None


def stop(cluster: Path) -> None:
    """Stop the server and wait for it; connections still open are cut off.

    Signals, not pg_ctl: pg_ctl refuses to run as root.
    """
    for order, seconds in (
        (signal.SIGINT, FAST_STOP_SECONDS),
        (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS),
    ):
        process = find(cluster)
        if process is None:
            return
        try:
            process.send_signal(order)
        except psutil.NoSuchProcess:
            return
        deadline = time.monotonic() + seconds
        while find(cluster) == process and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)


def stop_after_last_user(cluster: Path, users_file: Path, reaper: int) -> None:
    """Wait until no process holds the users lock, however it ended, then stop the server."""
    users = os.open(users_file, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(users, fcntl.LOCK_EX)
    stop(cluster)
    # The reaper lock goes first: who gets the users lock next must see that no reaper is left.
    os.close(reaper)
    os.close(users)


if __name__ == "__main__":
    if os.fork() != 0:  # not a child of the process that started it, which may outlive it
        os._exit(0)
    stop_after_last_user(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
