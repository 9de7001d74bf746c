"""Bearer tokens: only their SHA-256 is stored, with the role and what the role is bound to."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["client", "cell", "operator", "auditor", "developer"]
BOUND_ROLES: tuple[Role, ...] = ("client", "cell")
"""A client is bound to one host (`user/host`), a cell to one cell id."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. The token itself is nowhere."""

    token_sha256: bytes
    token_id: str
    role: Role
    bound_to: str | None
    created_at: int
    """Epoch ms."""

    def __post_init__(self) -> None:
        assert (self.bound_to is not None) == (self.role in BOUND_ROLES)


FIND = """
SELECT token_sha256, token_id, role, bound_to, created_at
FROM tokens WHERE token_sha256 = %s AND revoked_at IS NULL
"""
CREATE = """
INSERT INTO tokens (token_sha256, token_id, role, bound_to, created_at)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT (token_sha256) DO NOTHING
"""
REVOKE = """
UPDATE tokens SET revoked_at = %(at)s
WHERE token_id = %(token_id)s AND coalesce(revoked_at, %(at)s) = %(at)s
"""
"""Applied twice it answers the same: the time is the caller's."""
