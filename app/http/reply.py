"""An answer as bytes: a fraction of what a response object costs."""

from collections.abc import Iterable

from starlette.types import Receive, Scope, Send

Headers = Iterable[tuple[bytes, bytes]]
JSON = (b"content-type", b"application/json")


class Reply:
    """A whole answer; sent as any ASGI application is run."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Headers, body: bytes | None = None) -> None:
        self.status = status
        self.headers = [*headers]
        self.body = body or b""
        if body is not None:
            self.headers.append((b"content-length", b"%d" % len(body)))

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})
