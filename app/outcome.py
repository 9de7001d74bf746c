"""What became of a command, and how it is kept for a repeated idempotency key."""

from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """An answer or a refusal; `position` is the log's head when it was decided.

    `request_id` names the request that was answered so, once that is another one.
    """

    answer: Any
    refusal: Refusal | None
    position: int
    replayed: bool = False
    request_id: str | None = None

    @property
    def invites_again(self) -> bool:
        """Whether the same request may succeed later: such an outcome is never kept."""
        return isinstance(self.refusal, Exhausted)

    def result(self, key: str, fingerprint: str, now: int, request_id: str | None) -> Result:
        """The outcome as stored under its key."""
        assert not self.invites_again
        stored: dict[str, Any] = {"ok": self.answer}
        if self.refusal is not None:
            facts = self.refusal.facts
            stored = {"refusal": self.refusal.code, "facts": facts, "request_id": request_id}
        return Result(key, fingerprint, orjson.dumps(stored).decode(), self.position, now)


class Part(NamedTuple):
    """Which turn of a long work this is. Each answers how much all of them settled so far."""

    settled: int
    """By the turns before."""
    last: bool
    """Whether the work is done once this turn settles nothing."""


def replayed(result: Result, fingerprint: str) -> Outcome | None:
    """The stored outcome of the same request; a refusal if the request is another.

    Earlier code stored refusals that invite to try again, too: they count as not there.
    """
    stored = orjson.loads(result.answer)
    refusal = None
    if "refusal" in stored:
        refusal = REFUSALS[stored["refusal"]](**stored["facts"])
    told = (stored.get("ok"), refusal, result.position)
    outcome = Outcome(*told, replayed=True, request_id=stored.get("request_id"))
    if outcome.invites_again:
        return None
    if result.fingerprint != fingerprint:
        return Outcome(None, KeyReused(), result.position)
    return outcome
