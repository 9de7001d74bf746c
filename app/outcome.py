"""What became of a command, and how it is kept for a repeated idempotency key."""

from dataclasses import dataclass
from typing import Any

import orjson

from adapters.ports import Result
from domain import refusals
from domain.refusals import Exhausted, Refusal


def _tree(refusal: type[Refusal]) -> list[type[Refusal]]:
    return [refusal, *(leaf for child in refusal.__subclasses__() for leaf in _tree(child))]


class VersionMismatch(Refusal):
    """A command came for a version of a stream that is not the newest."""

    code = "version_mismatch"
    title = "The cell has another version than If-Match wants"


REFUSALS: dict[str, type[Refusal]] = {
    it.code: it for it in _tree(refusals.Refusal) if "code" in vars(it) and it is not Refusal
}
"""Every refusal by its code."""


class KeyReused(Refusal):
    """An idempotency key came back with another request."""

    code = "idempotency_key_reused"
    title = "The idempotency key was used for another request"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer or a refusal; `position` is the log's head when it was decided."""

    answer: Any
    refusal: Refusal | None
    position: int
    replayed: bool = False
    request_id: str | None = None
    """The id of the first request, if this is its outcome once more."""

    @property
    def lasts(self) -> bool:
        """Whether its idempotency key keeps it: not when there may be room the next time."""
        return not isinstance(self.refusal, Exhausted)

    def result(self, key: str, fingerprint: str, request_id: str | None, now: int) -> Result:
        """The outcome as stored under its key."""
        stored: dict[str, Any] = {"ok": self.answer}
        if self.refusal is not None:
            stored = {"refusal": self.refusal.code, "facts": self.refusal.facts}
        stored["request_id"] = request_id
        return Result(key, fingerprint, orjson.dumps(stored).decode(), self.position, now)


def replayed(result: Result, fingerprint: str) -> Outcome:
    """The stored outcome of the same request; a refusal if the request is another."""
    if result.fingerprint != fingerprint:
        return Outcome(None, KeyReused(), result.position)
    stored = orjson.loads(result.answer)
    answer, refusal = stored.get("ok"), None
    if "refusal" in stored:
        refusal = REFUSALS[stored["refusal"]](**stored["facts"])
    return Outcome(answer, refusal, result.position, True, stored.get("request_id"))
