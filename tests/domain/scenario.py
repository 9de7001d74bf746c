"""given(what is true).when(command).then(what happens): the rules without a store or a clock.

    given(cell("a"), cell("b")).when(Assign(HOST), at=100).then(like(HostPlaced, cell_id="a"))

What is true is told by events and by touches, the changes to volatile rows. A scenario goes on:
each `when` starts from what the one before left behind. Every decision is checked to be pure, to
leave behind exactly what its events and touches tell, and not to depend on remembered judgements.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from domain.events import Event
from domain.ids import HostId
from domain.limits import ACTIVITY_LEASE_MS
from domain.refusals import Refusal
from domain.relay.assignment import Assignment, AssignmentEvent
from domain.relay.cell import CellEvent, evolve_cell
from domain.relay.command import Command
from domain.relay.decide import decide, evolve_assignment
from domain.relay.policy import Policy
from domain.relay.runtime import (
    Liveness,
    Touch,
    TouchDeadline,
    TouchLiveness,
    TouchPreference,
    TouchRuntime,
)
from domain.relay.turn import Decision, Facts, Load, ReadSet

ANY_CELL = Policy(require_live_cells=False)
LIVE_CELLS = Policy()


@dataclass(frozen=True)
class Like:
    """Something of a kind that shows these facts, whatever else it shows."""

    kind: type[Any]
    facts: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        return type(other) is self.kind and all(
            getattr(other, name) == value for name, value in self.facts.items()
        )


def like(kind: type[Any], /, **facts: Any) -> Like:
    """Matches an event or answer of exactly this kind by some of its facts."""
    return Like(kind, facts)


Happened: TypeAlias = Event | Touch
Expected: TypeAlias = Event | Touch | Like


def fold(facts: Facts, happened: Happened, now: int = 0) -> None:
    """Take in one event or touch the way a reader of the log and of the rows would."""
    if isinstance(happened, AssignmentEvent):
        host = HostId(happened.user_id, happened.relay_host_id)
        facts.assignments[host] = evolve_assignment(facts.assignments.get(host), happened)
        for shift in happened.shifts:
            facts.loads[shift.cell_id] = Load(*shift[2:])
    elif isinstance(happened, CellEvent):
        cell = facts.cells.get(happened.cell_id)
        facts.cells[happened.cell_id] = evolve_cell(cell, happened)
    elif isinstance(happened, Event):
        facts.selector["general"] = 0
    elif isinstance(happened, TouchRuntime):
        facts.runtimes[happened.cell_id] = happened.runtime
    elif not isinstance(happened, TouchPreference):
        host = HostId(happened.user_id, happened.relay_host_id)
        facts.liveness[host] = _alive(facts.liveness.get(host), happened, now)


def _alive(known: Liveness | None, touch: TouchLiveness | TouchDeadline, now: int) -> Liveness:
    known = known or Liveness(now + ACTIVITY_LEASE_MS, now)
    if isinstance(touch, TouchLiveness):
        return Liveness(touch.lease_expires_at, touch.last_activity_at, known.deadlines)
    deadlines = {k: v for k, v in known.deadlines.items() if k != touch.activity_id}
    if touch.deadline is not None:
        deadlines[touch.activity_id] = touch.deadline
    return replace(known, deadlines=deadlines)


class Scenario:
    """What is true, and how to go on from there."""

    def __init__(self, policy: Policy) -> None:
        self.facts = Facts()
        self._read_set = ReadSet(policy, self.facts)

    def given(self, *history: Happened) -> "Scenario":
        """Let more be true."""
        for happened in history:
            fold(self.facts, happened)
        self.facts.changed_cells.update(self.facts.cells)
        return self

    def after(self, *commands: Command, at: int, found: Sequence[HostId] = ()) -> "Scenario":
        """Commands that were accepted before."""
        for command in commands:
            self.when(command, at=at, found=found).then_accepted()
        return self

    def when(self, command: Command, *, at: int, found: Sequence[HostId] = ()) -> "Decided":
        """Decide on a command at a time (epoch ms), its scan having found these hosts."""
        before = deepcopy(self.facts)
        decision = decide(self._read_set, command, at, found)
        assert self.facts == before, "deciding changed what it read"
        for event in decision.events:
            assert type(event).model_validate(event.model_dump()) == event, "a field is mistyped"
        anew = decide(ReadSet(self._read_set.policy, before), command, at, found)
        assert _said(anew) == _said(decision), "what was remembered changed the decision"
        for happened in (*decision.events, *decision.touches):
            fold(before, happened, at)
        self.facts.adopt(decision.after)
        assert self.facts == before, "what is left behind is not what events and touches tell"
        return Decided(self, decision)

    def assignment(self, host: HostId) -> Assignment:
        return self.facts.assignments[host]


def _said(decision: Decision) -> tuple[Any, ...]:
    refusal = decision.refusal
    refused = refusal and (refusal.code, refusal.facts)
    return decision.answer, refused, decision.events, decision.touches, decision.after


class Decided:
    """A decision to look at, in as many ways as the specification needs."""

    def __init__(self, scenario: Scenario, decision: Decision) -> None:
        self._scenario = scenario
        self.decision = decision
        self.given, self.after, self.when = scenario.given, scenario.after, scenario.when

    def then(self, *events: Expected) -> "Decided":
        """Exactly these events happened, in this order."""
        self.then_accepted()
        assert self.decision.events == list(events)
        return self

    def then_accepted(self) -> "Decided":
        assert self.decision.refusal is None, self.decision.refusal
        return self

    def then_nothing(self) -> "Decided":
        """Accepted, and nothing at all changed."""
        return self.then().then_touches()

    def then_answers(self, answer: Any) -> "Decided":
        self.then_accepted()
        assert self.decision.answer == answer
        return self

    def then_refused(self, kind: type[Refusal], /, *kept: Expected, **facts: Any) -> "Decided":
        """Refused for these facts; of what it had decided it keeps this and nothing else."""
        refusal = self.decision.refusal
        assert type(refusal) is kind, refusal
        assert refusal.facts == {**refusal.facts, **facts}
        assert [*self.decision.events, *self.decision.touches] == list(kept)
        return self

    def then_touches(self, *touches: Touch) -> "Decided":
        """Exactly these volatile rows were changed, in whatever order."""
        assert sorted(map(repr, self.decision.touches)) == sorted(map(repr, touches))
        return self

    def then_touched(self, *touches: Touch) -> "Decided":
        """These volatile rows were changed, among others."""
        assert [touch for touch in touches if touch not in self.decision.touches] == []
        return self

    def then_load(
        self, cell_id: str, reserved: int, leased: int, connections: int = 0
    ) -> "Decided":
        """What the cell holds now: units by counters, units by leases, connections."""
        load = self._scenario.facts.loads.get(cell_id, Load())
        assert load == Load(reserved, leased, connections)
        return self

    def then_holds(self, host: HostId, **facts: Any) -> "Decided":
        """What the host's assignment shows now."""
        assert self._scenario.assignment(host) == like(Assignment, **facts)
        return self

    def then_leases(self, host: HostId, *activity_ids: str) -> "Decided":
        """The host holds exactly these activity leases now."""
        assert sorted(self._scenario.assignment(host).leases) == sorted(activity_ids)
        return self

    def then_connections(self, host: HostId, *states: str) -> "Decided":
        """The states of the host's outstanding connections, the oldest first."""
        held = self._scenario.assignment(host).connections
        assert [held[number].state for number in sorted(held)] == list(states)
        return self


def given(*history: Happened, policy: Policy = ANY_CELL) -> Scenario:
    """Begin a scenario. Unless the policy says otherwise, cells need not be live."""
    return Scenario(policy).given(*history)
