"""Whether a cell takes a host now, and if not, why and since when (contract 2.1, 4.7).

Told to people and in refusals. A placement asks `ranking`, which agrees with it:
`tests/domain/relay/test_standing.py`.
"""

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias

from domain.refusals import Fact
from domain.relay.cell import Cell
from domain.relay.headroom import fresh, has_headroom, live
from domain.relay.policy import Policy
from domain.relay.runtime import SILENT, CellRuntime
from domain.relay.turn import NO_LOAD, Load, Turn

Word: TypeAlias = Literal[
    "open", "silent", "not_ready", "wrong_incarnation", "without_headroom", "closed", "full"
]


class Standing(NamedTuple):
    """A cell's standing in a word, and since when (epoch ms) where that is known.

    Silent is since the last heartbeat, if there ever was one; a wrong incarnation since the last
    report of connections, which another incarnation made than the one that sends heartbeats.
    """

    word: Word
    since: int | None = None

    def facts(self, cell_id: str) -> dict[str, Fact]:
        """The facts of a refusal because of this cell."""
        return {"cell_id": cell_id, "standing": self.word, "standing_since": self.since}


def standing(cell: Cell, load: Load, runtime: CellRuntime, now: int, policy: Policy) -> Standing:
    """What keeps the cell from serving its own hosts comes first, then what keeps out others."""
    heartbeat, telemetry = runtime.heartbeat, runtime.telemetry
    if heartbeat is None or not fresh(heartbeat.last_heartbeat_at, now, policy):
        unserving = Standing("silent", heartbeat.last_heartbeat_at if heartbeat else None)
    elif policy.require_live_cells and not heartbeat.ready:
        unserving = Standing("not_ready")
    elif telemetry is not None and telemetry.cell_incarnation != heartbeat.cell_incarnation:
        unserving = Standing("wrong_incarnation", telemetry.snapshot_at)
    else:
        unserving = Standing("without_headroom")
    if not live(runtime, now, policy) or not has_headroom(cell, load, runtime, now, policy):
        return unserving
    if cell.admission != "general":
        return Standing("closed", cell.admission_changed_at)
    return Standing("full" if load.reserved_units >= cell.capacity_units else "open")


def standing_of(turn: Turn, cell_id: str) -> dict[str, Fact]:
    """The facts of a refusal because of one cell, which may be unknown."""
    cell = turn.cell(cell_id)
    if cell is None:
        return {"cell_id": cell_id, "standing": "unknown"}
    load, runtime = turn.load(cell_id), turn.runtime(cell_id)
    return standing(cell, load, runtime, turn.now, turn.policy).facts(cell_id)


def standings(turn: Turn) -> dict[str, Fact]:
    """The facts of a refusal because of all cells: how many there are, and of each standing."""
    loads, runtimes = turn.loads(), turn.runtimes()
    found = Counter(
        standing(
            cell, loads.get(cell_id, NO_LOAD), runtimes.get(cell_id, SILENT), turn.now, turn.policy
        ).word
        for cell_id, cell in turn.cells().items()
    )
    return {"cells": found.total(), **{f"cells_{word}": found[word] for word in sorted(found)}}
