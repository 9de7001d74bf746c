"""Names of things: hosts, activities and the ids the rules themselves make."""

from typing import NamedTuple

from domain.limits import ACTIVITY_ID_LENGTH_MAX
from domain.refusals import InvalidActivityId

PENDING_CONTROL_PREFIX = "control-pending:"


class HostId(NamedTuple):
    """A host: a user's desktop, known by the user id and the relay host id."""

    user_id: str
    relay_host_id: str


def pending_control_id(epoch: int) -> str:
    """The activity id of the control lease a grant holds until the host attaches."""
    return f"{PENDING_CONTROL_PREFIX}{epoch}"


def control_id(cell_id: str, generation: int) -> str:
    """The activity id of a live control of one cell and generation."""
    return f"control:{cell_id}:{generation}"


def utf16_length(text: str) -> int:
    """Length as the contract counts it: UTF-16 code units, not characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def require_activity_id(activity_id: str) -> str:
    """Return the id. Refuses `invalid_activity_id` unless it has 1 to 256 code units."""
    if not 1 <= utf16_length(activity_id) <= ACTIVITY_ID_LENGTH_MAX:
        raise InvalidActivityId(length=utf16_length(activity_id), length_max=ACTIVITY_ID_LENGTH_MAX)
    return activity_id
