"""The log over HTTP: pages that never change, its head, and a stream of what comes."""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from adapters.entry import Entry
from adapters.postgres.log_pages import LOOKED_AT_ENTRIES_MAX, Page
from app.http import access, events, problems
from app.http.commands import service_of
from app.http.document import Answer, Described, operation
from app.http.models import TEXT_PATTERN
from app.http.questions import MinPosition, WaitMs, answered, reached
from app.tokens import STREAM_OUTLIVES_SECONDS_MAX
from domain.limits import SAFE_INTEGER_MAX

router = APIRouter(prefix="/v1/log")

PAGE_ENTRIES_DEFAULT = 100
PAGE_ENTRIES_MAX = 1_000
STREAM_LENGTH_MAX = 1_024
TOPIC_LENGTH_MAX = 128
CURSOR_LENGTH_MAX = 64
CURSOR_PREFIX = "after:"
PAGE_TOLD = (
    f"The page. One of a topic comes after at most {LOOKED_AT_ENTRIES_MAX} entries were looked at: "
    "it may hold fewer than `limit`, even none, while `next` moved on past them."
)
STREAM_TOLD = (
    "Events until the reader goes. The last one says why when the service ends it: `leaving`, "
    "`too_slow`, `log_unavailable`, or a refusal such as `token_not_accepted`, which comes within "
    f"{STREAM_OUTLIVES_SECONDS_MAX:.0f} seconds of a revocation."
)
FOREVER = "private, max-age=31536000, immutable"

After = Annotated[
    int, Query(ge=0, le=SAFE_INTEGER_MAX, description="Only entries after this position.")
]
Stream = Annotated[
    str | None, Query(max_length=STREAM_LENGTH_MAX, pattern=TEXT_PATTERN, examples=["cell:c-1"])
]
Topic = Annotated[
    str | None, Query(max_length=TOPIC_LENGTH_MAX, pattern=TEXT_PATTERN, examples=["host.placed"])
]
Cursor = Annotated[
    str | None,
    Query(max_length=CURSOR_LENGTH_MAX, description="`next` of a page; it replaces `after`."),
]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the log. `state` is the stored JSON, byte for byte; the chain value covers it."""

    position: int
    stream: str
    version: int
    topic: str
    recorded_at: str
    chain: str
    state: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries in order, and the cursor of what follows. All is read when `next` stays the same."""

    entries: list[LogEntry]
    next: str


@dataclass(frozen=True, slots=True)
class LogHead:
    """How far the log goes, and the value that all of it hashes to."""

    position: int
    chain: str
    recorded_at: str


def rfc3339(microseconds: int) -> str:
    """Epoch microseconds as log metadata shows a time."""
    seconds, rest = divmod(microseconds, 1_000_000)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{rest:06}Z"


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as the log's routes show it."""
    return {
        "position": entry.position,
        "stream": entry.stream,
        "version": entry.version,
        "topic": entry.topic,
        "recorded_at": rfc3339(entry.recorded_at),
        "chain": entry.chain.hex(),
        "state": orjson.Fragment(entry.state),
    }


def cursor_of(position: int) -> str:
    """An opaque cursor to what follows a position."""
    return base64.urlsafe_b64encode(f"{CURSOR_PREFIX}{position}".encode()).decode().rstrip("=")


def position_of(cursor: str) -> int:
    """The position in a cursor. Refuses `bad_cursor`."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise problems.BadCursor from None
    number = text.removeprefix(CURSOR_PREFIX)
    if number == text or not number.isdecimal() or not number.isascii():
        raise problems.BadCursor
    position = int(number)
    if position > SAFE_INTEGER_MAX or cursor_of(position) != cursor:
        raise problems.BadCursor
    return position


ENTRY = {
    "position": 7,
    "stream": "cell:c-1",
    "version": 3,
    "topic": "cell.admission_changed",
    "recorded_at": "2025-08-01T00:00:00.000123Z",
    "chain": "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
    "state": {
        "v": 1,
        "meta": {
            "command_id": "8f14e45fceea167a5a36dedd",
            "actor": "operator:1f0e3dad99908345f7439f8f",
            "correlation_id": "req-1",
            "causation_id": None,
            "trace_id": None,
        },
        "event": {
            "at": 1_754_000_000_000,
            "cell_id": "c-1",
            "before": "general",
            "admission": "existing-only",
            "reason": "operator",
        },
    },
}
PAGE = {"entries": [ENTRY], "next": cursor_of(7)}
HEAD = {name: ENTRY[name] for name in ("position", "chain", "recorded_at")}


@router.get(
    "",
    **operation(
        Described(
            "ReadLog",
            "A page of the log; one short of the head never changes",
            "log",
            (
                Answer(
                    PAGE_TOLD,
                    model=LogPage,
                    example=PAGE,
                    headers=("Log-Position", "ETag", "Link", "Cache-Control"),
                ),
                Answer("The page is the one you have.", 304, headers=("ETag",)),
            ),
            access.READERS,
            refusals=(problems.BadCursor, problems.PositionNotReached),
            headers=({"name": "If-None-Match", "in": "header", "schema": {"type": "string"}},),
        )
    ),
)
async def read_log(
    request: Request,
    after: After = 0,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_ENTRIES_MAX)] = PAGE_ENTRIES_DEFAULT,
    stream: Stream = None,
    topic: Topic = None,
    min_position: MinPosition = None,
    wait_ms: WaitMs = 0,
) -> Response:
    service = service_of(request)
    (await access.identify(request, service)).require_role(access.READERS)
    if cursor is not None:
        after = position_of(cursor)
    await reached(service, min_position, wait_ms)
    page = await service.reads.page(after, limit, stream, topic)
    follows = cursor_of(page.looked_to)
    filters = {"stream": stream, "topic": topic}
    asked = {"limit": limit, **{name: it for name, it in filters.items() if it is not None}}
    headers = {"Link": f'</v1/log?{urlencode({"cursor": follows, **asked})}>; rel="next"'}
    if len(page.entries) == limit or page.looked_to < page.head:
        headers |= {"ETag": _etag(after, page), "Cache-Control": FOREVER}
        headers["Vary"] = "Authorization"
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(None, 304, headers)
    shown = {"entries": [entry_json(entry) for entry in page.entries], "next": follows}
    return answered(shown, page.head, headers)


def _etag(after: int, page: Page) -> str:
    """The last chain value covers every entry before it; the ends say which page it is."""
    chain = page.entries[-1].chain.hex()[:32] if page.entries else ""
    return f'"{after}-{page.looked_to}-{len(page.entries)}-{chain}"'


@router.get(
    "/head",
    **operation(
        Described(
            "ReadLogHead",
            "How far the log goes, and the value that all of it hashes to",
            "log",
            (Answer("The head.", model=LogHead, example=HEAD, headers=("Log-Position",)),),
            access.READERS,
            refusals=(problems.PositionNotReached,),
        )
    ),
)
async def read_log_head(
    request: Request, min_position: MinPosition = None, wait_ms: WaitMs = 0
) -> Response:
    service = service_of(request)
    (await access.identify(request, service)).require_role(access.READERS)
    await reached(service, min_position, wait_ms)
    head = await service.reads.head()
    shown = LogHead(head.position, head.chain.hex(), rfc3339(head.recorded_at))
    return answered(shown, head.position)


@router.get(
    "/stream",
    **operation(
        Described(
            "FollowLog",
            "The log as server-sent events: `id` is the position, `data` an entry",
            "log",
            (Answer(STREAM_TOLD, media_type="text/event-stream"),),
            access.READERS,
            refusals=(problems.TooManyStreams,),
            headers=(
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "description": "Continue after this position; it replaces `after`.",
                    "schema": {"type": "string"},
                },
            ),
        )
    ),
)
async def follow_log(
    request: Request, after: After = 0, stream: Stream = None, topic: Topic = None
) -> Response:
    service = service_of(request)

    async def allow() -> None:
        (await access.identify(request, service)).require_role(access.READERS)

    await allow()
    if service.streams >= events.STREAMS_MAX:
        raise problems.TooManyStreams(streams_max=events.STREAMS_MAX)
    last = request.headers.get("last-event-id", "")
    if last.isdecimal() and last.isascii() and len(last) <= len(str(SAFE_INTEGER_MAX)):
        after = min(int(last), SAFE_INTEGER_MAX)
    return events.EventStream(
        service, after, stream, topic, lambda it: orjson.dumps(entry_json(it)), allow
    )
