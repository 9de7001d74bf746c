"""On a terminal `tenure serve` writes for people and says what to try next.

It wrote JSON there too, and after the address of the documentation nothing.
"""

import logging
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from app import logs
from app.cli.serve import next_steps
from app.logs import LogFormat
from app.settings import Settings

RUN = "from app.cli.main import main; main()"
START_SECONDS_MAX = 20.0
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def read_until(terminal: int, is_enough: Callable[[str], bool]) -> str:
    """What was written on a terminal, until it is enough or everybody has left it."""
    said = b""
    while not is_enough(said.decode()):
        assert select.select([terminal], [], [], START_SECONDS_MAX)[0], said
        try:
            said += os.read(terminal, 4_096)
        except OSError:
            break
    return COLOURS.sub("", said.decode()).replace("\r\n", "\n")


def test_a_service_on_a_terminal_is_readable(database: str, tmp_path: Path) -> None:
    ours, its = pty.openpty()
    environment = {
        **os.environ,
        "TENURE_DATABASE_URL": database,
        "TENURE_ALLOW_UNSAFE_DURABILITY": "true",
        "PYTHONUNBUFFERED": "1",
    }
    options = ["--port", "0", "--data-dir", str(tmp_path), "--no-sweeps"]
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "serve", *options], env=environment, stdout=its, stderr=its
    ) as process:
        os.close(its)
        said = read_until(ours, lambda it: "every request" in it)
        process.send_signal(signal.SIGTERM)
        said += read_until(ours, lambda _: False)
    os.close(ours)
    assert not [line for line in said.splitlines() if line.startswith("{")]
    assert re.search(r"^\d\d:\d\d:\d\dZ \[info +\] Application startup complete", said, re.M)
    steps = said[said.index("ready; try next") :].splitlines()[1:4]
    assert [it.split("  ")[1].split()[:2] for it in steps[:2]] == [
        [".venv/bin/tenure", "replay"],
        [".venv/bin/tenure", "cells"],
    ]
    assert re.match(r"  http://127\.0\.0\.1:\d+/docs ", steps[2])


def test_a_first_look_needs_no_options() -> None:
    lines = next_steps(Settings(), "http://127.0.0.1:8420/docs").splitlines()
    assert lines[1].startswith(
        "  .venv/bin/tenure replay tests/vectors/relay/dir-10-headroom.jsonl"
    )
    assert Path(lines[1].split()[2]).exists()
    assert lines[2].split("  ")[1] == ".venv/bin/tenure cells"


def test_the_steps_never_show_the_password_of_a_database() -> None:
    settings = Settings(database_url="postgresql://me:s3cret@db/tenure", data_dir=Path("a b"))
    told = next_steps(settings, "http://127.0.0.1:8420/docs")
    assert "cells --data-dir 'a b' --url http://127.0.0.1:8420 " in told
    assert "s3cret" not in told


@contextmanager
def configured(log_format: LogFormat) -> Iterator[None]:
    """The process's logging as the service sets it, and as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    logs.configure("info", log_format)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)


@pytest.mark.parametrize("log_format", ["auto", "json", "console"])
def test_no_format_shows_what_an_exception_says(
    capsys: pytest.CaptureFixture[str], log_format: LogFormat
) -> None:
    with configured(log_format):
        try:
            raise ValueError("s3cret")
        except ValueError:
            logging.getLogger("tenure.test").exception("it failed", extra={"request_id": "r-1"})
    (line,) = capsys.readouterr().err.splitlines()
    assert "s3cret" not in line
    if log_format == "console":
        assert re.match(r"\d\d:\d\d:\d\dZ \[error +\] it failed +\[tenure\.test\] error=", line)
        assert "request_id=r-1" in line
    else:
        told = orjson.loads(line)
        assert (told["event"], told["error"]) == ("it failed", "builtins.ValueError")
