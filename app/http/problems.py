"""Every "no" over HTTP: RFC 9457 problems, one table from refusal class to status.

The edge's own refusals are classes like the domain's. A class not in the table is judged by its
base, so a new refusal of the domain has a problem as soon as it has a place in the tree.
"""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from adapters.ports import Unavailable
from app.http.reply import Headers, Reply
from app.outcome import REFUSALS, KeyReused, VersionMismatch
from app.writer import QueueFull
from domain import refusals
from domain.refusals import Refusal

MEDIA_TYPE = "application/problem+json"


class EdgeRefusal(Refusal):
    """A "no" that the HTTP edge itself says."""


class BrokenJson(EdgeRefusal):
    code = "broken_json"
    title = "The body is not JSON"


class BadCursor(EdgeRefusal):
    code = "bad_cursor"
    title = "The cursor did not come from this service"


class BadIdempotencyKey(EdgeRefusal):
    code = "bad_idempotency_key"
    title = "An idempotency key has 1 to 255 visible ASCII characters"


class BadIfMatch(EdgeRefusal):
    code = "bad_if_match"
    title = "If-Match takes * or strong ETags"


class TokenNotAccepted(EdgeRefusal):
    code = "token_not_accepted"
    title = "The request has no bearer token, or an unknown one"


class RoleNotAllowed(EdgeRefusal):
    code = "role_not_allowed"
    title = "The token's role may not do this"


class RouteNotFound(EdgeRefusal):
    code = "route_not_found"
    title = "Nothing is at this path"


class UnknownOperation(EdgeRefusal):
    code = "unknown_operation"
    title = "No command that a batch takes has this name"


class MethodNotAllowed(EdgeRefusal):
    code = "method_not_allowed"
    title = "This path has no such method"


class ClockGoesBack(EdgeRefusal):
    code = "clock_goes_back"
    title = "The virtual clock never goes back"


class BodyTooLarge(EdgeRefusal):
    code = "body_too_large"
    title = "The body is larger than this route takes"


class ContentTypeNotJson(EdgeRefusal):
    code = "content_type_not_json"
    title = "A body is sent as application/json"


class InvalidRequest(EdgeRefusal):
    code = "invalid_request"
    title = "The request does not have the documented form"


class InvalidForm(InvalidRequest):
    """The request has the wrong form; `errors` says where, never with which value."""

    def __init__(self, errors: list[dict[str, str]]) -> None:
        super().__init__()
        self.errors = errors


class InternalError(EdgeRefusal):
    code = "internal_error"
    title = "The service made a mistake"


class CommandQueueFull(EdgeRefusal):
    code = "queue_full"
    title = "Too many commands are waiting"


class LogUnavailable(EdgeRefusal):
    """The log could not be reached, or was held by others, for as long as a request may wait.

    Should the line have broken while a command was committed, it may have been done all the same:
    repeated under its key it is never done twice.
    """

    code = "log_unavailable"
    title = "The log cannot be reached"


class TooManyStreams(EdgeRefusal):
    code = "too_many_streams"
    title = "As many readers follow the log as the service can serve"


class PositionNotReached(EdgeRefusal):
    code = "position_not_reached"
    title = "The log has not reached min_position in time"


@dataclass(frozen=True, slots=True)
class Kind:
    """How a refusal travels: its status, and after how many seconds to try again."""

    status: int
    retry_after_seconds: int | None = None


TABLE: Mapping[type[Refusal], Kind] = {
    refusals.Malformed: Kind(422),
    refusals.NotFound: Kind(404),
    refusals.Conflict: Kind(409),
    refusals.Exhausted: Kind(503, 1),
    KeyReused: Kind(422),
    BrokenJson: Kind(400),
    BadCursor: Kind(400),
    BadIdempotencyKey: Kind(400),
    BadIfMatch: Kind(400),
    TokenNotAccepted: Kind(401),
    RoleNotAllowed: Kind(403),
    RouteNotFound: Kind(404),
    UnknownOperation: Kind(404),
    MethodNotAllowed: Kind(405),
    ClockGoesBack: Kind(409),
    VersionMismatch: Kind(412),
    BodyTooLarge: Kind(413),
    ContentTypeNotJson: Kind(415),
    InvalidRequest: Kind(422),
    InternalError: Kind(500),
    CommandQueueFull: Kind(503, 1),
    LogUnavailable: Kind(503, 1),
    TooManyStreams: Kind(503, 5),
    PositionNotReached: Kind(503, 1),
}


def kind_of(refusal: type[Refusal]) -> Kind:
    """The row of the table for a class: its own, or its nearest base's."""
    return next(TABLE[base] for base in refusal.__mro__ if base in TABLE)


def all_problems() -> Iterator[type[Refusal]]:
    """Every class that has a problem, the domain's first."""
    yield from (it for it in REFUSALS.values() if issubclass(it, tuple(TABLE)))
    yield KeyReused
    yield from EdgeRefusal.__subclasses__()


BY_CODE: Mapping[str, type[Refusal]] = {it.code: it for it in all_problems()}


def refusal_of(error: BaseException) -> Refusal | None:
    """What an error says to a client; None when it is a mistake of the service."""
    match error:
        case Refusal():
            return error
        case QueueFull():
            return CommandQueueFull()
        case Unavailable():
            return LogUnavailable()
    return None


def problem(refusal: Refusal, instance: str, request_id: str) -> dict[str, object]:
    """The members of a problem."""
    kind = kind_of(type(refusal))
    facts = ", ".join(f"{name} is {value}" for name, value in refusal.facts.items())
    told: dict[str, object] = {
        "type": f"/problems/{refusal.code}",
        "title": refusal.title,
        "status": kind.status,
        "detail": f"{refusal.title}: {facts}." if facts else f"{refusal.title}.",
        "instance": instance,
        "code": refusal.code,
        "request_id": request_id,
        **refusal.facts,
    }
    if isinstance(refusal, InvalidForm):
        told["errors"] = refusal.errors
    return told


def problem_reply(refusal: Refusal, instance: str, request_id: str, headers: Headers = ()) -> Reply:
    """The answer for a refusal."""
    kind = kind_of(type(refusal))
    sent = [*headers, (b"content-type", MEDIA_TYPE.encode())]
    if kind.retry_after_seconds is not None:
        sent.append((b"retry-after", b"%d" % kind.retry_after_seconds))
    if kind.status == 401:
        sent.append((b"www-authenticate", b"Bearer"))
    return Reply(kind.status, sent, orjson.dumps(problem(refusal, instance, request_id)))


def page(refusal: type[Refusal]) -> str:
    """What `/problems/<code>` says to a person."""
    kind = kind_of(refusal)
    title, code = html.escape(refusal.title), html.escape(refusal.code)
    again = "The same request cannot succeed later unless something else changes first."
    if kind.retry_after_seconds is not None:
        again = (
            f"Try again after {kind.retry_after_seconds} s, then less and less often. "
            "This answer is not kept: the same idempotency key is a new attempt."
        )
    about = html.escape((refusal.__doc__ or "").strip())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{code}</title>'
        f"<h1>{title}</h1><p>Code <code>{code}</code>, status {kind.status}.</p>"
        f"<p>{about}</p><p>{again}</p></html>"
    )
