"""What goes around every request: its id, its trace, its count, and the last word on mistakes.

Plain ASGI: a request costs one wrapped `send` and nothing else.
"""

import logging
import re
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters.clock import Ids
from app.http.problems import InternalError, problem_reply
from app.telemetry import Telemetry

REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
TRACEPARENT = re.compile(rb"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
UNMATCHED = "unmatched"

log = logging.getLogger("tenure.http")


class Envelope:
    """Outermost middleware. Leaves `request_id` and `trace_id` in the request's state."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry, ids: Ids, access_lines: bool) -> None:
        self._app = app
        self._telemetry = telemetry
        self._ids = ids
        self._access_lines = access_lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id, returned, trace_id = self._named(scope)
        state = scope.setdefault("state", {})
        state["request_id"], state["trace_id"] = request_id, trace_id
        status = 0

        async def enveloped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *returned]
            await send(message)

        try:
            await self._app(scope, receive, enveloped)
        except Exception:
            extra = {"request_id": request_id, "operation": _operation(scope)}
            log.exception("a request failed", extra=extra)
            if status:
                raise
            reply = problem_reply(InternalError(), scope["path"], request_id)
            await reply(scope, receive, enveloped)
        operation = _operation(scope)
        self._telemetry.request(operation, status)
        if self._access_lines:
            told = {
                "request_id": request_id,
                "operation": operation,
                "method": scope["method"],
                "status": status,
                "took_ms": round((time.perf_counter() - started) * 1_000, 3),
            }
            log.debug("answered", extra=told)

    def _named(self, scope: Scope) -> tuple[str, list[tuple[bytes, bytes]], str | None]:
        """The request's id, the headers to return, and the trace's id."""
        request_id = trace = None
        for name, value in scope["headers"]:
            if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
                request_id = value
            elif name == b"traceparent":
                trace = TRACEPARENT.fullmatch(value)
        if request_id is None:
            request_id = self._ids.new().encode()
        returned = [(b"x-request-id", request_id)]
        if trace is None:
            return request_id.decode(), returned, None
        returned.append((b"traceparent", trace[0]))
        return request_id.decode(), returned, trace[1].decode()


def _operation(scope: Scope) -> str:
    return str(scope["state"].get("operation", UNMATCHED))
