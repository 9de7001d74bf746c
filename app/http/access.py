"""Who is asking, and what their role lets them do."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from adapters.postgres.reads import Reads
from adapters.postgres.tokens import Role, Token
from app.http.problems import RoleNotAllowed

P = TypeVar("P")
F = TypeVar("F")

Lookup: TypeAlias = Callable[[Reads], Awaitable[str | None]]
"""Finds out what a token must be bound to; None when the thing is nobody's."""
Bound: TypeAlias = Callable[[P, F], str | Lookup]
"""What a token must be bound to, to ask this with these path parameters and this body."""
Roles: TypeAlias = Mapping[Role, Bound[P, F] | None]
"""The roles that may ask, each with what its token must be bound to, if to anything."""

ANYONE: Mapping[Role, None] = {}
"""No token is needed."""
OPERATOR: Mapping[Role, None] = {"operator": None}
READERS: Mapping[Role, None] = {"operator": None, "auditor": None, "developer": None}


@dataclass(frozen=True, slots=True)
class Caller:
    """A token's role, and the one thing it speaks for."""

    role: Role
    bound_to: str | None
    actor: str
    """How the caller is named in the log."""

    def require_role(self, roles: Mapping[Role, object]) -> None:
        """Refuses `role_not_allowed`."""
        if self.role not in roles:
            raise RoleNotAllowed(role=self.role)

    async def require_bound(self, roles: Roles[P, F], path: P, form: F, reads: Reads) -> None:
        """A bound token speaks for its own thing only. Refuses `role_not_allowed`."""
        bound = roles[self.role]
        if bound is None:
            return
        wanted = bound(path, form)
        if not isinstance(wanted, str):
            found = await wanted(reads)
            if found is None:
                return
            wanted = found
        if wanted != self.bound_to:
            raise RoleNotAllowed(role=self.role)


def caller_of(token: Token) -> Caller:
    """Bound tokens act as what they are bound to, so a renewed token is the same actor."""
    return Caller(token.role, token.bound_to, f"{token.role}:{token.bound_to or token.token_id}")
