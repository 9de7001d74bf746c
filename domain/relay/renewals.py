"""Renewing many controls of one cell at once, judged item by item in one statement.

Nothing here is an event: a renewal between a lease's start and its end is volatile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from domain.ids import utf16_length
from domain.limits import ACTIVITY_ID_LENGTH_MAX, CONTROL_RENEWAL_HORIZON_MS
from domain.relay.command import Command


class Renewal(NamedTuple):
    """One control to extend to `expires_at` (epoch ms)."""

    user_id: str
    relay_host_id: str
    activity_id: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class RenewControls(Command):
    """Extend many controls of a cell, by the rules of a single renewal; never shorten any."""

    cell_id: str
    items: tuple[Renewal, ...]


@dataclass(frozen=True, slots=True)
class RefusedRenewal:
    """The item at `index` was not renewed, and why."""

    index: int
    code: str


@dataclass(frozen=True, slots=True)
class Renewed:
    """How many items were renewed, and each one that was refused."""

    renewed: int
    refused: tuple[RefusedRenewal, ...]


def refused_on_sight(items: Sequence[Renewal], now: int) -> dict[int, str]:
    """Items that need no look at the state: a bad id, a past or too distant expiry."""
    refused = {}
    for index, item in enumerate(items):
        if not 1 <= utf16_length(item.activity_id) <= ACTIVITY_ID_LENGTH_MAX:
            refused[index] = "invalid_activity_id"
        elif not now < item.expires_at <= now + CONTROL_RENEWAL_HORIZON_MS:
            refused[index] = "invalid_activity_expiry"
    return refused
