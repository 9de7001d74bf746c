"""Names of streams: readable, with every part percent-encoded."""

import re
from functools import lru_cache
from urllib.parse import quote

from domain.events import Event
from domain.ids import HostId
from domain.relay.assignment import AssignmentEvent
from domain.relay.cell import CellEvent

_PLAIN = re.compile(r"[A-Za-z0-9._~-]+").fullmatch
"""What percent-encoding leaves as it is; most ids are nothing else."""
SELECTOR_STREAM = "admission-selector:general"


@lru_cache(maxsize=65_536)
def host_stream(host: HostId) -> str:
    """The stream of a host's assignment."""
    return f"assignment:{_encoded(host.user_id)}/{_encoded(host.relay_host_id)}"


def cell_stream(cell_id: str) -> str:
    """The stream of a cell."""
    return f"cell:{_encoded(cell_id)}"


def _encoded(part: str) -> str:
    return part if _PLAIN(part) else quote(part, safe="", errors="surrogatepass")


def stream_of(event: Event) -> str:
    """The stream that an event belongs to."""
    if isinstance(event, AssignmentEvent):
        return host_stream(HostId(event.user_id, event.relay_host_id))
    return cell_stream(event.cell_id) if isinstance(event, CellEvent) else SELECTOR_STREAM
