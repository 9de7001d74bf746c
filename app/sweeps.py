"""Sweeps: taking back what nobody renewed, in as many turns of the writer as it takes."""

from dataclasses import dataclass

from adapters.entry import Meta
from app.outcome import Outcome
from app.scribe import Request
from app.writer import LogWriter
from domain.refusals import Refusal
from domain.relay.command import Command
from domain.relay.connection import LapseConnections
from domain.relay.expiry import ForgetOldPreferences, ReleaseExpiredCounts, ReleaseExpiredLeases

SWEEPS: dict[str, tuple[Command, ...]] = {
    "activity-leases": (LapseConnections(), ReleaseExpiredLeases()),
    "activity": (ReleaseExpiredCounts(),),
    "region-preferences": (ForgetOldPreferences(),),
}
"""The commands of each sweep, each repeated until nothing is due."""

TURNS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Swept:
    """How much the sweep's last command settled in all, or what refused it."""

    settled: int
    refusal: Refusal | None
    position: int

    @property
    def outcome(self) -> Outcome:
        """As a command's outcome."""
        answer = None if self.refusal else self.settled
        return Outcome(answer, self.refusal, self.position)


async def run(writer: LogWriter, name: str, meta: Meta) -> Swept:
    """Sweep until nothing is due. Raises `QueueFull`, `Unavailable`."""
    settled, position = 0, 0
    for command in SWEEPS[name]:
        settled = 0
        for _ in range(TURNS_MAX):
            outcome = await writer.execute(Request(command, meta))
            position = outcome.position
            if outcome.refusal is not None:
                return Swept(settled, outcome.refusal, position)
            if not outcome.answer:
                break
            settled += outcome.answer
    return Swept(settled, None, position)


async def sweep(writer: LogWriter, name: str, meta: Meta) -> int:
    """Sweep until nothing is due; answers how much was settled. Raises what refused it."""
    swept = await run(writer, name, meta)
    if swept.refusal is not None:
        raise swept.refusal
    return swept.settled
