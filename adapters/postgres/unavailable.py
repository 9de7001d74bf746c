"""Why there is no PostgreSQL to use."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATA_DIRECTORY_NOT_WRITABLE = "data_directory_not_writable"
DISK_FULL = "disk_full"
DURABILITY_OFF = "durability_off"
SERVER_NOT_REACHABLE = "server_not_reachable"
SERVER_TOO_OLD = "server_too_old"

_CODE_BY_TEXT = {
    "No space left on device": DISK_FULL,
    "Disk quota exceeded": DISK_FULL,
    "Permission denied": DATA_DIRECTORY_NOT_WRITABLE,
    "Read-only file system": DATA_DIRECTORY_NOT_WRITABLE,
    "has wrong ownership": DATA_DIRECTORY_NOT_WRITABLE,
}


class ServerUnavailable(Exception):
    """No PostgreSQL can be used; `code` is one of this module's constants."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(" ".join(message.split()))


def from_output(what: str, output: str) -> ServerUnavailable:
    """The reason in what a PostgreSQL program wrote, taken from its first line that says why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line for line in lines if "FATAL:" in line or "error:" in line or "PANIC:" in line]
    cause = (causes or lines[-1:] or ["it said nothing"])[0]
    codes = (code for text, code in _CODE_BY_TEXT.items() if text in output)
    return ServerUnavailable(next(codes, SERVER_NOT_REACHABLE), f"{what}: {cause}")


def from_os_error(folder: Path, error: OSError) -> ServerUnavailable:
    """The reason in an operating system error met while preparing the data directory."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ServerUnavailable(DISK_FULL, f"the disk of {folder} is full: {error}")
    return ServerUnavailable(
        DATA_DIRECTORY_NOT_WRITABLE, f"the data directory {folder} cannot be used: {error}"
    )


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn operating system errors about `folder` into `ServerUnavailable`."""
    try:
        yield
    except OSError as error:
        raise from_os_error(folder, error) from error
