"""All tokens as an operator lists them."""

from typing import NamedTuple

from adapters.postgres.store import connect


class ListedToken(NamedTuple):
    """A token without its hash. Times epoch ms."""

    token_id: str
    role: str
    bound_to: str | None
    created_at: int
    revoked_at: int | None


_LIST = """
SELECT token_id, role, bound_to, created_at, revoked_at FROM tokens ORDER BY created_at, token_id
"""


def listed_tokens(dsn: str) -> list[ListedToken]:
    """The tokens, in use or revoked, oldest first."""
    with connect(dsn) as connection:
        return [ListedToken(*row) for row in connection.execute(_LIST).fetchall()]
