"""Sweeps: taking back what nobody renewed, in as many turns of the writer as it takes."""

from adapters.entry import Meta
from app.outcome import Outcome, Part
from app.scribe import Request
from app.writer import LogWriter
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


async def run(
    writer: LogWriter, name: str, meta: Meta, key: str | None = None, fingerprint: str = ""
) -> Outcome:
    """Sweep until nothing is due; answers how much the last command settled in all.

    The last turn, which finds nothing due, keeps the answer under the key in its own transaction.
    Raises `QueueFull`, `Unavailable`.
    """
    for command in SWEEPS[name]:
        settled = 0
        for _ in range(TURNS_MAX):
            part = Part(settled, command is SWEEPS[name][-1])
            outcome = await writer.execute(Request(command, meta, key, fingerprint, part=part))
            if outcome.replayed or outcome.refusal is not None:
                return outcome
            if outcome.answer == settled:
                break
            settled = outcome.answer
    return outcome


async def sweep(writer: LogWriter, name: str, meta: Meta) -> int:
    """Sweep until nothing is due; answers how much was settled. Raises what refused it."""
    outcome = await run(writer, name, meta)
    if outcome.refusal is not None:
        raise outcome.refusal
    settled: int = outcome.answer
    return settled
