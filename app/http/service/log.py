"""The log over HTTP: pages that never change, its head, and a stream of what comes."""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import orjson
from fastapi import Query as InQuery

from adapters.entry import Entry
from adapters.postgres.log_pages import LOOKED_AT_ENTRIES_MAX, Page
from app.http import events, problems
from app.http.access import READERS
from app.http.declaration import GET, Answer, Endpoint, Header, NoParameters, Parameters
from app.http.models import TEXT_PATTERN
from app.http.query import Asked, AtPosition, Query, answered
from app.http.reply import Reply
from app.tokens import STREAM_OUTLIVES_SECONDS_MAX
from domain.limits import SAFE_INTEGER_MAX

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
    int, InQuery(ge=0, le=SAFE_INTEGER_MAX, description="Only entries after this position.")
]
Stream = Annotated[
    str | None, InQuery(max_length=STREAM_LENGTH_MAX, pattern=TEXT_PATTERN, examples=["cell:c-1"])
]
Topic = Annotated[
    str | None,
    InQuery(max_length=TOPIC_LENGTH_MAX, pattern=TEXT_PATTERN, examples=["host.placed"]),
]
Cursor = Annotated[
    str | None,
    InQuery(max_length=CURSOR_LENGTH_MAX, description="`next` of a page; it replaces `after`."),
]


class Following(Parameters):
    """What to send."""

    after: After = 0
    stream: Stream = None
    topic: Topic = None


class Paging(Parameters):
    """Which entries a page holds."""

    after: After = 0
    cursor: Cursor = None
    limit: Annotated[int, InQuery(ge=1, le=PAGE_ENTRIES_MAX)] = PAGE_ENTRIES_DEFAULT
    stream: Stream = None
    topic: Topic = None


class PageQuery(AtPosition, Paging):
    """A page, and how new it must be."""


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


async def read_log(asked: Asked[NoParameters, PageQuery, None]) -> Reply:
    query = asked.query
    after = query.after if query.cursor is None else position_of(query.cursor)
    page = await asked.service.reads.page(after, query.limit, query.stream, query.topic)
    follows = cursor_of(page.looked_to)
    filters = {"stream": query.stream, "topic": query.topic}
    asked_for = {
        "limit": query.limit,
        **{name: it for name, it in filters.items() if it is not None},
    }
    headers = {"link": f'</v1/log?{urlencode({"cursor": follows, **asked_for})}>; rel="next"'}
    if len(page.entries) == query.limit or page.looked_to < page.head:
        headers |= {"etag": _etag(after, page), "cache-control": FOREVER}
        headers["vary"] = "Authorization"
        if asked.header(b"if-none-match") == headers["etag"]:
            return Reply(304, [(name.encode(), it.encode()) for name, it in headers.items()])
    shown = {"entries": [entry_json(entry) for entry in page.entries], "next": follows}
    return answered(shown, page.head, headers.items())


def _etag(after: int, page: Page) -> str:
    """The last chain value covers every entry before it; the ends say which page it is."""
    chain = page.entries[-1].chain.hex()[:32] if page.entries else ""
    return f'"{after}-{page.looked_to}-{len(page.entries)}-{chain}"'


async def read_log_head(asked: Asked[NoParameters, AtPosition, None]) -> Reply:
    head = await asked.service.reads.head()
    shown = LogHead(head.position, head.chain.hex(), rfc3339(head.recorded_at))
    return answered(shown, head.position)


async def follow_log(asked: Asked[NoParameters, Following, None]) -> events.EventStream:
    service, after = asked.service, asked.query.after
    if service.streams >= events.STREAMS_MAX:
        raise problems.TooManyStreams(streams_max=events.STREAMS_MAX)
    last = asked.header(b"last-event-id") or ""
    if last.isdecimal() and last.isascii() and len(last) <= len(str(SAFE_INTEGER_MAX)):
        after = min(int(last), SAFE_INTEGER_MAX)
    return events.EventStream(
        service,
        after,
        asked.query.stream,
        asked.query.topic,
        lambda it: orjson.dumps(entry_json(it)),
        asked.allow,
    )


OPERATIONS: tuple[Endpoint, ...] = (
    Query(
        "ReadLog",
        GET,
        "/v1/log",
        tag="log",
        summary="A page of the log; one short of the head never changes",
        query=PageQuery,
        headers=(Header("If-None-Match"),),
        roles=READERS,
        ask=read_log,
        answer=Answer(
            PAGE_TOLD,
            model=LogPage,
            example=PAGE,
            headers=("Log-Position", "ETag", "Link", "Cache-Control"),
        ),
        other_answers=(Answer("The page is the one you have.", 304, headers=("ETag",)),),
        refusals=(problems.BadCursor,),
    ),
    Query(
        "ReadLogHead",
        GET,
        "/v1/log/head",
        tag="log",
        summary="How far the log goes, and the value that all of it hashes to",
        query=AtPosition,
        roles=READERS,
        ask=read_log_head,
        answer=Answer("The head.", model=LogHead, example=HEAD, headers=("Log-Position",)),
    ),
    Query(
        "FollowLog",
        GET,
        "/v1/log/stream",
        tag="log",
        summary="The log as server-sent events: `id` is the position, `data` an entry",
        query=Following,
        headers=(Header("Last-Event-ID", "Continue after this position; it replaces `after`."),),
        roles=READERS,
        ask=follow_log,
        answer=Answer(STREAM_TOLD, media_type="text/event-stream"),
        refusals=(problems.TooManyStreams,),
    ),
)
