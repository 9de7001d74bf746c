"""Operations that change something: from a request, alone or in a batch, to the log and back.

An idempotency key belongs to its caller. Its fingerprint covers what is asked, however it was
sent: operation, parameters, condition, body and caller.
"""

import hashlib
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Generic, TypeVar

import orjson

from adapters.entry import Meta
from app.bootstrap import Service
from app.http.access import Roles
from app.http.call import Call, Sender, key_of
from app.http.declaration import Body, Endpoint, Header, NoParameters, Parameters, taken
from app.http.problems import BadIfMatch, problem_reply
from app.http.reply import JSON, Reply
from app.outcome import Outcome, VersionMismatch
from app.scribe import Condition, Request
from domain.refusals import Refusal
from domain.relay.command import Command

ETAG = re.compile(r'"(\d{1,19})"')

P = TypeVar("P", bound=Parameters)
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Sent:
    """What came for an operation, not yet understood."""

    parameters: Mapping[str, str]
    body: bytes
    key: str | None
    """As stored: it begins with its caller."""
    if_match: str | None


@dataclass(frozen=True, slots=True)
class Order(Generic[P, F]):
    """What an allowed caller asks of an operation."""

    path: P
    form: F
    meta: Meta
    key: str | None
    fingerprint: str
    """What two requests with the same key must have in common."""
    if_match: str | None


@dataclass(frozen=True)
class IfMatch(Generic[P]):
    """The stream whose version an If-Match header names."""

    stream: Callable[[P], str]
    description: str

    def condition(self, path: P, sent: str | None) -> Condition | None:
        """The versions in If-Match; none listed means any. Refuses `bad_if_match`."""
        if sent is None:
            return None
        if sent.strip() == "*":
            return Condition(self.stream(path), ())
        tags = [ETAG.fullmatch(part.strip()) for part in sent.split(",")]
        if not all(tags):
            raise BadIfMatch
        return Condition(self.stream(path), tuple(int(tag[1]) for tag in tags if tag))


@dataclass(frozen=True)
class Changing(Endpoint, Generic[P, F]):
    """An endpoint that changes something, under an idempotency key once."""

    _: KW_ONLY
    path: type[P]
    body: Body[F]
    roles: Roles[P, F]

    keyed: ClassVar[bool] = True

    async def reply(self, call: Call) -> Reply:
        sender = await call.sender(self.roles)
        key = key_of(sender.caller, call.header(b"idempotency-key"))
        call.query(NoParameters.model_fields)
        bytes_max = self.body.bytes_max(sender.service.settings)
        body = await call.body(bytes_max) if self.body.forms else b"null"
        sent = Sent(call.parameters, body, key, call.header(b"if-match"))
        order = await self.order(sender, sent)
        return self.told(order, await self.decided(sender.service, order))

    @abstractmethod
    async def decided(self, service: Service, order: Order[P, F]) -> Outcome:
        """What became of it. Raises `QueueFull`, `Unavailable`."""

    async def order(self, sender: Sender, sent: Sent) -> Order[P, F]:
        """What was sent, understood and allowed. Raises `Unavailable`.

        Refuses `invalid_request`, `broken_json`, `role_not_allowed`.
        """
        path = taken(self.path, sent.parameters, "path")
        form = self.body.parse(sent.body)
        await sender.caller.require_bound(self.roles, path, form, sender.service.reads)
        fingerprint = ""
        if sent.key is not None:
            fingerprint = self._fingerprint(sender, path, form, sent.if_match)
        return Order(path, form, sender.meta(), sent.key, fingerprint, sent.if_match)

    def _fingerprint(self, sender: Sender, path: P, form: F, if_match: str | None) -> str:
        asked = (self.name, sender.caller.actor, if_match or "", path.model_dump_json())
        digest = hashlib.sha256("\n".join(asked).encode())
        digest.update(b"\n" + self.body.canonical(form))
        return digest.hexdigest()

    def told(self, order: Order[P, F], outcome: Outcome) -> Reply:
        """The outcome as an answer. A repeated one is the first one, byte for byte."""
        headers = [(b"log-position", b"%d" % outcome.position)]
        if outcome.replayed:
            headers.append((b"idempotency-replayed", b"true"))
        if outcome.refusal is not None:
            request_id = outcome.request_id or order.meta.correlation_id or ""
            return problem_reply(outcome.refusal, self.at(order.path), request_id, headers)
        if self.answer.status == 204:
            return Reply(204, headers)
        return Reply(200, [*headers, JSON], orjson.dumps(self.content(outcome)))

    def content(self, outcome: Outcome) -> object:
        """What the answer says."""
        shape = self.answer.shape
        return outcome.answer if shape is None else shape(outcome.answer)


@dataclass(frozen=True)
class Operation(Changing[P, F]):
    """One command; a batch takes it too."""

    _: KW_ONLY
    command: Callable[[P, F], Command]
    if_match: IfMatch[P] | None = None

    async def decided(self, service: Service, order: Order[P, F]) -> Outcome:
        return await service.writer.execute(self.request(order))

    def request(self, order: Order[P, F]) -> Request:
        """The command as the log writer takes it. Refuses `bad_if_match`."""
        condition = None
        if self.if_match is not None:
            condition = self.if_match.condition(order.path, order.if_match)
        command = self.command(order.path, order.form)
        return Request(command, order.meta, order.key, order.fingerprint, condition)

    @property
    def more_headers(self) -> tuple[Header, ...]:
        if self.if_match is None:
            return ()
        pattern = r'^(\*|"[0-9]{1,18}"(, *"[0-9]{1,18}")*)$'
        return (Header("If-Match", self.if_match.description, pattern, '"3"'),)

    @property
    def more_refusals(self) -> tuple[type[Refusal], ...]:
        return (BadIfMatch, VersionMismatch) if self.if_match is not None else ()


@dataclass(frozen=True)
class LongOperation(Changing[P, F]):
    """Commands in turns of their own until all is done; too long for a batch."""

    _: KW_ONLY
    run: Callable[[Service, Order[P, F]], Awaitable[Outcome]]

    async def decided(self, service: Service, order: Order[P, F]) -> Outcome:
        return await self.run(service, order)
