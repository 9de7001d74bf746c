"""Who is asking, and what their role lets them do."""

from dataclasses import dataclass

from starlette.requests import Request

from adapters.postgres.tokens import Role, Token
from app.bootstrap import Service
from app.http.problems import InvalidRequest, RoleNotAllowed, TokenNotAccepted
from domain.ids import HostId

OPERATOR: tuple[Role, ...] = ("operator",)
READERS: tuple[Role, ...] = ("operator", "auditor", "developer")
HOSTS: tuple[Role, ...] = ("operator", "client")
HOST_READERS: tuple[Role, ...] = (*READERS, "client")
CELLS: tuple[Role, ...] = ("operator", "cell")
CELL_READERS: tuple[Role, ...] = (*READERS, "cell")
HOSTS_AND_CELLS: tuple[Role, ...] = ("operator", "client", "cell")


@dataclass(frozen=True, slots=True)
class Caller:
    """A token's role, and the one host or cell it speaks for."""

    role: Role
    bound_to: str | None
    actor: str
    """How the caller is named in the log."""

    def require_role(self, roles: tuple[Role, ...]) -> None:
        """Refuses `role_not_allowed`."""
        if self.role not in roles:
            raise RoleNotAllowed(role=self.role)

    def require_host(self, roles: tuple[Role, ...], host: HostId) -> None:
        """A client speaks for its own host only. Refuses `role_not_allowed`."""
        self.require_role(roles)
        if self.role == "client" and self.bound_to != "/".join(host):
            raise RoleNotAllowed(role=self.role)

    def require_cell(self, roles: tuple[Role, ...], cell_id: str | None) -> None:
        """A cell speaks for itself only. Refuses `role_not_allowed`."""
        self.require_role(roles)
        if self.role == "cell" and self.bound_to != cell_id:
            raise RoleNotAllowed(role=self.role)


def caller_of(token: Token) -> Caller:
    """Bound tokens act as what they are bound to, so a renewed token is the same actor."""
    return Caller(token.role, token.bound_to, f"{token.role}:{token.bound_to or token.token_id}")


async def identify(request: Request, service: Service) -> Caller:
    """Who sent the request. Refuses `token_not_accepted`, `invalid_request`; raises `Unavailable`.

    A query parameter that the route does not know is refused: ignored, it would be a silent typo.
    """
    if request.scope["query_string"]:
        known = {it.alias for it in request.scope["route"].dependant.query_params}
        if not known.issuperset(request.query_params):
            raise InvalidRequest(part="query", known=", ".join(sorted(known)))
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise TokenNotAccepted
    found = await service.tokens.find(token.strip())
    if found is None:
        raise TokenNotAccepted
    return caller_of(found)
