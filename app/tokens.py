"""Who a bearer token stands for. The hot path asks a small cache that forgets within seconds."""

import hashlib
import hmac
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from adapters.clock import Clock, Ids
from adapters.postgres.reads import Reads
from adapters.postgres.tokens import Role, Token

CACHE_SECONDS_MAX = 5.0
ASK_AGAIN_SECONDS = 10.0
"""How often what goes on for long asks whether its token is still accepted."""
STREAM_OUTLIVES_SECONDS_MAX = ASK_AGAIN_SECONDS + CACHE_SECONDS_MAX
"""A stream ends so soon after its token was revoked."""
CACHED_MAX = 10_000
TOKEN_BYTES = 32
TOKEN_LENGTH_MAX = 512


def token_hash(token: str) -> bytes:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).digest()


class Tokens:
    """Known tokens, each remembered for at most `CACHE_SECONDS_MAX`; unknown ones never."""

    def __init__(self, reads: Reads, seconds: Callable[[], float] = time.monotonic) -> None:
        self._reads = reads
        self._seconds = seconds
        self._known: OrderedDict[bytes, tuple[float, Token]] = OrderedDict()

    async def find(self, token: str) -> Token | None:
        """What the token stands for; None when it is unknown or revoked. Raises `Unavailable`."""
        if not 0 < len(token) <= TOKEN_LENGTH_MAX:
            return None
        digest = token_hash(token)
        known = self._known.get(digest)
        if known is not None and known[0] > self._seconds():
            return known[1]
        self._known.pop(digest, None)
        found = await self._reads.token(digest)
        if found is None or not hmac.compare_digest(found.token_sha256, digest):
            return None
        self._known[digest] = (self._seconds() + CACHE_SECONDS_MAX, found)
        if len(self._known) > CACHED_MAX:
            self._known.popitem(last=False)
        return found


async def create(
    reads: Reads, role: Role, bound_to: str | None, *, clock: Clock, ids: Ids, token: str = ""
) -> tuple[str, Token]:
    """Store a new token and return it; this is the only time it can be seen."""
    token = token or secrets.token_urlsafe(TOKEN_BYTES)
    stored = Token(token_hash(token), ids.new(), role, bound_to, clock.now_ms())
    await reads.create_token(stored)
    return token, stored


async def local(reads: Reads, data_dir: Path, *, clock: Clock, ids: Ids) -> tuple[Path, bool]:
    """The file with this machine's own operator token (mode 600), and whether it is new."""
    path = data_dir / "token"
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    token, is_new = secrets.token_urlsafe(TOKEN_BYTES), True
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        token, is_new = path.read_text().strip(), False
    else:
        with os.fdopen(descriptor, "w") as file:
            file.write(token + "\n")
    await create(reads, "operator", None, clock=clock, ids=ids, token=token)
    return path, is_new
