"""Log lines on standard error, without values of anyone's data: for programs one JSON object each.

Of an exception a line has the type and where it happened, not its message: a database quotes rows.
"""

import logging
import sys
import traceback
from types import TracebackType
from typing import Any, Literal, TypeAlias

import orjson
import structlog
from structlog.typing import EventDict, Processor

FRAMES_MAX = 20

LogFormat: TypeAlias = Literal["auto", "json", "console"]


def configure(level: str, log_format: LogFormat) -> None:
    """Send all log lines of the process, ours and the libraries', through one renderer.

    `auto` writes for people if standard error is a terminal, and JSON if it is not.
    """
    terminal = sys.stderr.isatty()
    for_people = log_format == "console" or (log_format == "auto" and terminal)
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="%H:%M:%SZ" if for_people else "iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        _where_it_happened,
        _without_colours,
    ]
    renderer: Processor = structlog.processors.JSONRenderer(serializer=_render)
    if for_people:
        renderer = structlog.dev.ConsoleRenderer(colors=terminal)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").addFilter(_is_no_traceback)


def _is_no_traceback(record: logging.LogRecord) -> bool:
    """The server writes a failed start as text; the service has said it already, by its type."""
    return not str(record.msg).startswith("Traceback")


def _render(event: EventDict, **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()


def _without_colours(_: Any, __: str, event: EventDict) -> EventDict:
    event.pop("color_message", None)
    return event


def _where_it_happened(_: Any, __: str, event: EventDict) -> EventDict:
    told = event.pop("exc_info", None)
    if told is True:
        told = sys.exc_info()
    error = told[1] if isinstance(told, tuple) else told
    if isinstance(error, BaseException):
        event["error"] = f"{type(error).__module__}.{type(error).__qualname__}"
        event["frames"] = _frames(error.__traceback__)
    return event


def _frames(where: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(where)[-FRAMES_MAX:]
    return [f"{frame.name}:{frame.lineno}" for frame in frames]
