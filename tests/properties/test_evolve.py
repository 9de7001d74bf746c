"""Folding events never refuses, and needs no order but that of each stream."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.entry import Entry
from adapters.snapshots import read_assignment, write_assignment
from domain.relay.assignment import Assignment, AssignmentEvent
from domain.relay.cell import Cell, CellEvent, evolve_cell
from domain.relay.decide import evolve_assignment
from tests.properties.commands import History, histories
from tests.properties.conftest import bounded
from tests.properties.world import World


class Folded:
    """States by stream, as any reader would fold them."""

    def __init__(self, world: World) -> None:
        self._mapper = world.mapper
        self.assignments: dict[str, Assignment] = {}
        self.cells: dict[str, Cell] = {}

    def take(self, entry: Entry) -> None:
        event, stream = self._mapper.read(entry), entry.stream
        if isinstance(event, AssignmentEvent):
            self.assignments[stream] = evolve_assignment(self.assignments.get(stream), event)
        elif isinstance(event, CellEvent):
            self.cells[stream] = evolve_cell(self.cells.get(stream), event)


@bounded(40)
@given(histories(), st.data())
def test_streams_may_be_read_in_any_order_relative_to_each_other(
    history: History, data: Any
) -> None:
    """Whatever the order, the fold arrives where the writer is."""
    world = history.world()
    folded = Folded(world)
    unread = {name: iter(entries) for name, entries in world.store.streams.items()}
    for name in data.draw(st.permutations([it.stream for it in world.store.entries])):
        folded.take(next(unread[name]))
    known = world.scribe.known.facts
    assert {it.host: it for it in folded.assignments.values()} == known.assignments
    assert {it.cell_id: it for it in folded.cells.values()} == known.cells


@bounded(30)
@given(histories())
def test_a_snapshot_may_stand_for_any_beginning_of_a_stream(history: History) -> None:
    world = history.world()
    direct: dict[str, Assignment] = {}
    restored: dict[str, Assignment] = {}
    for entry in world.store.entries:
        event, stream = world.mapper.read(entry), entry.stream
        if isinstance(event, AssignmentEvent):
            direct[stream] = evolve_assignment(direct.get(stream), event)
            after = evolve_assignment(restored.get(stream), event)
            restored[stream] = read_assignment(write_assignment(after))
            assert restored[stream] == direct[stream]
            for part in ("connections", "leases", "controls"):
                assert [*getattr(restored[stream], part)] == [*getattr(direct[stream], part)]
