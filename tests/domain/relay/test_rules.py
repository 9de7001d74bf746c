"""The two tables of rules: every command has one, every event is folded and named."""

from copy import deepcopy

import pytest

from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.assignment import AssignmentEvent
from domain.relay.cell import CELL_EVENTS, AdmissionSelectorOpened
from domain.relay.command import Command
from domain.relay.connection import LapseConnections
from domain.relay.control import ActivateControl
from domain.relay.decide import EVENTS, RULES, decide
from domain.relay.expiry import ForgetOldPreferences, ReleaseExpiredCounts, ReleaseExpiredLeases
from domain.relay.heartbeat import RecordRehomeStatus
from domain.relay.inventory import CellSettings, ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.policy import Policy
from domain.relay.turn import ReadSet
from tests.domain.relay.fleet import (
    DAY,
    HOST,
    OTHER,
    beat,
    cell,
    connections,
    limited,
    url,
)
from tests.domain.scenario import Scenario, given

SETTINGS = CellSettings("b", url("b"), 20)
COMMANDS: tuple[Command, ...] = (
    ReconcileCells((SETTINGS,)),
    ConfigureCell(SETTINGS, "existing-only"),
    SetCellAdmission("a", "migration-only"),
    beat("a", incarnation="two", started_at=60, told=connections(3, watermark=9)),
    RecordRehomeStatus("a", "one", 3, 1, 2, 3, 4, 5, 6, 7),
    Assign(HOST, "asia-east2"),
    RebalanceDormant(OTHER, "c"),
    ChangeActivity(HOST, "invite", 1),
    AcquireActivity(HOST, "s", "invite", "a"),
    ReleaseActivity(HOST, "s"),
    ActivateControl(HOST, "a", 1, 2, True, "one", 8),
    RenewControl(HOST, "control:a:1", "a", DAY + 120_000),
    LapseConnections(),
    ReleaseExpiredLeases(),
    ReleaseExpiredCounts(),
    ForgetOldPreferences(),
)


def busy() -> Scenario:
    """A day in: one host at work whose leases are over, one that left long ago."""
    return (
        given(limited("a"), cell("b"), cell("c"))
        .after(beat("a", told=connections(0, watermark=0)), at=0)
        .after(Assign(HOST), Assign(OTHER), at=0)
        .after(ReleaseActivity(OTHER, "control-pending:1"), at=0)
        .after(ActivateControl(HOST, "a", 1, 1, False, "one", 3), at=1)
        .after(AcquireActivity(HOST, "s", "splice", "a"), at=2)
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda it: type(it).__name__)
def test_deciding_is_a_pure_function_of_what_is_read(command: Command) -> None:
    facts = busy().facts
    before = deepcopy(facts)
    read_set = ReadSet(Policy(require_live_cells=False), facts)
    first = decide(read_set, command, DAY, [HOST, OTHER])
    assert facts == before
    assert decide(read_set, command, DAY, [HOST, OTHER]) == first
    assert first.refusal is None


@pytest.mark.parametrize("command", COMMANDS, ids=lambda it: type(it).__name__)
def test_what_is_left_behind_is_what_the_events_tell(command: Command) -> None:
    """`when` compares the states a decision leaves with those its events and touches fold to."""
    busy().when(command, at=DAY, found=[HOST, OTHER]).then_accepted()


def test_there_is_a_command_for_every_rule_above() -> None:
    assert {type(it) for it in COMMANDS} == set(RULES)


def test_topics_are_told_apart_and_versions_begin_at_one() -> None:
    assert len({event.topic for event in EVENTS}) == len(EVENTS)
    for event in EVENTS:
        assert event.version >= 1
        assert set(event.upcasters) == set(range(1, event.version))


def test_every_event_has_a_stream_it_belongs_to() -> None:
    for event in EVENTS:
        assert issubclass(event, AssignmentEvent) or event in (
            *CELL_EVENTS,
            AdmissionSelectorOpened,
        )
