"""Where requests are given to endpoints, and refusals become problems. Plain ASGI."""

from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from app.bootstrap import Service
from app.http.call import Call
from app.http.declaration import Endpoint
from app.http.problems import MethodNotAllowed, RouteNotFound, problem_reply, refusal_of
from app.http.reply import Reply
from app.http.routes import Routes


class Edge:
    """The endpoints, and what FastAPI has beside them: the pages that show the document."""

    def __init__(self, service: Service, endpoints: Iterable[Endpoint], pages: ASGIApp) -> None:
        self._service = service
        self._routes = Routes(endpoints)
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        path = scope["raw_path"].decode("latin-1")
        found = self._routes.find(scope["method"], path)
        if found is None:
            await self._page(path, scope, receive, send)
            return
        endpoint, parameters = found
        scope["state"]["operation"] = endpoint.name
        call = Call(scope, receive, self._service, parameters)
        try:
            reply = await endpoint.reply(call)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            reply = problem_reply(refusal, path, call.request_id)
        await reply(scope, receive, send)

    async def _page(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        methods = self._routes.methods(path)
        if methods:
            await self._not_allowed(path, scope, methods)(scope, receive, send)
            return
        try:
            await self._pages(scope, receive, send)
        except HTTPException as error:
            reply = problem_reply(RouteNotFound(), path, scope["state"]["request_id"])
            if error.status_code == 405:
                reply = self._not_allowed(path, scope, ["GET", "HEAD"])
            await reply(scope, receive, send)

    def _not_allowed(self, path: str, scope: Scope, methods: list[str]) -> Reply:
        allow = (b"allow", ", ".join(methods).encode())
        return problem_reply(MethodNotAllowed(), path, scope["state"]["request_id"], [allow])
