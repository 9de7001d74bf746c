"""Whether the service may take requests, check by check."""

from dataclasses import dataclass

from adapters.ports import Unavailable
from adapters.postgres import migrate
from app.bootstrap import Service

STALLED_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold, and what was seen."""

    name: str
    passed: bool
    detail: str


async def checks(service: Service) -> list[Check]:
    """All checks. The database's settings are only judged when it answers."""
    listed = [
        Check("serving", service.ready, "serving" if service.ready else "starting or leaving"),
        _writer(service),
        Check("tail", True, "listening" if service.tail.listening else "reconnecting"),
    ]
    try:
        durability = await service.reads.durability()
        applied = await service.reads.migrations_applied()
    except Unavailable as error:
        return [*listed, Check("database", False, f"does not answer: {error}")]
    allowed = service.settings.allow_unsafe_durability
    off = sorted(name for name, setting in durability.items() if setting == "off")
    seen = f"{', '.join(off)} off" if off else "on"
    known = len(migrate.load())
    return [
        *listed,
        Check("database", True, "answers"),
        Check("durability", allowed or not off, seen),
        Check("unsafe_durability_allowed", True, "yes" if allowed else "no"),
        Check("migrations", applied == known, f"{applied} of {known} applied"),
    ]


def _writer(service: Service) -> Check:
    unreadable = service.writer.unreadable
    if unreadable is not None:
        return Check("writer", False, f"cannot read {unreadable.what}")
    stalled_seconds = service.writer.stalled_seconds
    if stalled_seconds >= STALLED_SECONDS_MAX:
        seen = f"commands wait, and none was committed for {stalled_seconds:.0f} s"
        return Check("writer", False, seen)
    return Check("writer", service.writer.alive, "runs" if service.writer.alive else "ended")
