"""A request on its way to the log and back: who, what, with which key, and the answer.

The idempotency key belongs to the caller; its fingerprint covers method, path, body and caller.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from adapters.entry import Meta
from adapters.ports import Unavailable
from adapters.postgres.tokens import Role
from app.bootstrap import Service
from app.http.access import Caller, identify
from app.http.bodies import parse, read_body
from app.http.problems import (
    BadIdempotencyKey,
    CommandQueueFull,
    LogUnavailable,
    RoleNotAllowed,
    problem_response,
)
from app.outcome import Outcome
from app.scribe import Condition, Request
from app.writer import QueueFull
from domain.ids import HostId
from domain.relay.command import Command

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
JSON = "application/json"

T = TypeVar("T")
Shape = Callable[[Any], Any]


def service_of(request: HttpRequest) -> Service:
    """The service that the application was made for."""
    service: Service = request.app.state.service
    return service


class Call:
    """One request that carries a command."""

    __slots__ = ("_fingerprint", "caller", "key", "request", "service")

    def __init__(self, request: HttpRequest, service: Service, caller: Caller) -> None:
        self.request = request
        self.service = service
        self.caller = caller
        self.key: str | None = None
        self._fingerprint: bytes = b""
        key = request.headers.get("idempotency-key")
        if key is not None:
            if not IDEMPOTENCY_KEY.fullmatch(key):
                raise BadIdempotencyKey
            self.key = f"{caller.actor} {key}"

    @staticmethod
    async def of(request: HttpRequest) -> "Call":
        """The request with its caller. Refuses `token_not_accepted`, `bad_idempotency_key`."""
        service = service_of(request)
        return Call(request, service, await identify(request, service))

    async def body(self, adapter: TypeAdapter[T], bytes_max: int | None = None) -> T:
        """The parsed body; it becomes part of the fingerprint in its canonical form."""
        limit = self.service.settings.body_bytes_max if bytes_max is None else bytes_max
        parsed = parse(adapter, await read_body(self.request, limit))
        if self.key is not None:
            self._fingerprint = adapter.dump_json(parsed)
        return parsed

    @property
    def fingerprint(self) -> str:
        """What two requests with the same key must have in common."""
        if self.key is None:
            return ""
        request = self.request
        condition = request.headers.get("if-match", "")
        parts = (request.method, request.url.path, self.caller.actor, condition)
        digest = hashlib.sha256("\n".join(parts).encode())
        digest.update(b"\n" + self._fingerprint)
        return digest.hexdigest()

    @property
    def meta(self) -> Meta:
        """Who asks, for the log."""
        state = self.request.state
        return Meta(
            self.service.ids.new(),
            self.caller.actor,
            correlation_id=state.request_id,
            trace_id=state.trace_id,
        )

    async def execute(
        self, command: Command, shape: Shape | None = None, condition: Condition | None = None
    ) -> Response:
        """Run the command and answer with its outcome, given a shape if it needs one."""
        request = Request(command, self.meta, self.key, self.fingerprint, condition)
        try:
            outcome = await self.service.writer.execute(request)
        except QueueFull:
            raise CommandQueueFull from None
        except Unavailable:
            raise LogUnavailable from None
        return self.answer(outcome, shape)

    def answer(self, outcome: Outcome, shape: Shape | None = None) -> Response:
        """The outcome as a response; nothing to say is 204."""
        headers = {"Log-Position": str(outcome.position)}
        if outcome.replayed:
            headers["Idempotency-Replayed"] = "true"
        if outcome.refusal is not None:
            request_id = outcome.request_id or self.request.state.request_id
            return problem_response(outcome.refusal, self.request.url.path, request_id, headers)
        if shape is None and outcome.answer is None:
            return Response(None, 204, headers)
        answer = outcome.answer if shape is None else shape(outcome.answer)
        return Response(orjson.dumps(answer), 200, headers, JSON)

    # a cell acts for the hosts that are on it

    async def require_cell_of_host(self, roles: tuple[Role, ...], host: HostId) -> None:
        """A cell may act for a host that is on it, or on none."""
        self.caller.require_host(roles, host)
        if self.caller.role == "cell":
            place = (await self.service.reads.place(host)).value
            if place is not None and place.cell_id != self.caller.bound_to:
                raise RoleNotAllowed(role=self.caller.role)

    async def require_cell_of_lease(
        self, roles: tuple[Role, ...], host: HostId, activity_id: str
    ) -> None:
        """A cell may end a lease that weighs on it; one that is gone is nobody's."""
        self.caller.require_host(roles, host)
        if self.caller.role == "cell":
            cell_id = await self.service.reads.lease_cell(host, activity_id)
            if cell_id is not None and cell_id != self.caller.bound_to:
                raise RoleNotAllowed(role=self.caller.role)
