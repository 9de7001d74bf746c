"""A request on its way: who, what, with which key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope

from adapters.entry import Meta
from adapters.postgres.tokens import Role
from app.bootstrap import Service
from app.http.access import Caller, caller_of
from app.http.bodies import read_body
from app.http.problems import BadIdempotencyKey, InvalidRequest, TokenNotAccepted

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends commands, in which request."""

    service: Service
    caller: Caller
    request_id: str
    trace_id: str | None

    def meta(self) -> Meta:
        """Who asks, for the log."""
        new_id = self.service.ids.new()
        return Meta(new_id, self.caller.actor, self.request_id, trace_id=self.trace_id)


class Call:
    """One request to an endpoint, with the texts of its path's parameters."""

    __slots__ = (
        "_headers",
        "_receive",
        "_scope",
        "parameters",
        "request_id",
        "service",
        "trace_id",
    )

    def __init__(
        self, scope: Scope, receive: Receive, service: Service, parameters: Mapping[str, str]
    ) -> None:
        self._scope = scope
        self._receive = receive
        # Of headers that are there twice, the first counts.
        self._headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self.service = service
        self.parameters = parameters
        state = scope["state"]
        self.request_id: str = state["request_id"]
        self.trace_id: str | None = state["trace_id"]

    def header(self, name: bytes) -> str | None:
        """A header by its name in lower case."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    def query(self, known: Mapping[str, object]) -> dict[str, str]:
        """The query's parameters; ignored, an unknown one would be a silent typo.

        Refuses `invalid_request`.
        """
        sent: bytes = self._scope["query_string"]
        if not sent:
            return {}
        told = dict(parse_qsl(sent.decode("latin-1"), keep_blank_values=True))
        if not told.keys() <= known.keys():
            raise InvalidRequest(part="query", known=", ".join(sorted(known)))
        return told

    async def sender(self, roles: Mapping[Role, object]) -> Sender:
        """The caller, in one of these roles, and the request. Refuses as `caller` does."""
        return Sender(self.service, await self.caller(roles), self.request_id, self.trace_id)

    async def caller(self, roles: Mapping[Role, object]) -> Caller:
        """Who sent it, in one of these roles. Raises `Unavailable`.

        Refuses `token_not_accepted`, `role_not_allowed`.
        """
        scheme, _, token = (self.header(b"authorization") or "").partition(" ")
        if scheme.lower() != "bearer":
            raise TokenNotAccepted
        found = await self.service.tokens.find(token.strip())
        if found is None:
            raise TokenNotAccepted
        caller = caller_of(found)
        caller.require_role(roles)
        return caller

    async def body(self, bytes_max: int) -> bytes:
        """The body as sent. Refuses `content_type_not_json`, `body_too_large`."""
        return await read_body(self._headers, self._receive, bytes_max)


def key_of(caller: Caller, sent: str | None) -> str | None:
    """An idempotency key as stored: it belongs to its caller. Refuses `bad_idempotency_key`."""
    if sent is None:
        return None
    if not IDEMPOTENCY_KEY.fullmatch(sent):
        raise BadIdempotencyKey
    return f"{caller.actor} {sent}"
