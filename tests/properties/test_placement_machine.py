"""Hosts and cells against a plain model: nobody is placed where there is no room."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.outcome import Outcome
from domain.ids import HostId
from domain.limits import DEFAULT_REGION, REGIONS, Region
from domain.refusals import RelayCapacityExhausted
from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.assignment import KINDS, Kind
from domain.relay.cell import Admission
from domain.relay.command import Command
from domain.relay.control import ActivateControl
from domain.relay.expiry import ReleaseExpiredCounts, ReleaseExpiredLeases
from domain.relay.inventory import CellSettings, ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.placement import Grant
from domain.relay.policy import Policy
from tests.properties.commands import ADMISSIONS, CELLS, HOSTS, REGION_OF, WAITS_MS
from tests.properties.conftest import bounded
from tests.properties.world import World

hosts = st.sampled_from(HOSTS)
cell_ids = st.sampled_from(CELLS)
kinds = st.sampled_from(KINDS)
activity_ids = st.sampled_from(["x", "y", "z"])


def settings_of(cell_id: str, capacity: int) -> CellSettings:
    return CellSettings(cell_id, f"https://{cell_id}.test", capacity, REGION_OF[cell_id])


class Fleet(RuleBasedStateMachine):
    """A world of three cells without connection limits, and what every machine does to it."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Policy(require_live_cells=False))
        self.capacity: dict[str, int] = {}
        self.places: dict[HostId, tuple[str, int]] = {}
        """Where each host is and at which epoch, as its own answers told it."""

    @initialize(capacities=st.tuples(*[st.integers(2, 8)] * len(CELLS)))
    def begin(self, capacities: tuple[int, ...]) -> None:
        self.capacity = dict(zip(CELLS, capacities, strict=True))
        cells = tuple(settings_of(cell_id, n) for cell_id, n in self.capacity.items())
        assert self.world.run(ReconcileCells(cells)).refusal is None
        for host in HOSTS[:2]:
            self.assign_to(host, DEFAULT_REGION)

    def assign_to(self, host: HostId, region: Region) -> Outcome:
        outcome = self.do(Assign(host, region))
        if outcome.refusal is None:
            self.placed(host, outcome.answer)
        return outcome

    def reserved(self) -> dict[str, int]:
        return {row[0]: row[1] for row in self.world.rows("cell_reservations")}

    def do(self, command: Command) -> Outcome:
        """Run a command. Whatever it is, it raises no cell above its capacity."""
        before = self.reserved()
        outcome = self.world.run(command)
        for cell_id, units in self.reserved().items():
            assert units <= max(before.get(cell_id, 0), self.capacity[cell_id])
        return outcome

    def placed(self, host: HostId, grant: Grant) -> None:
        """The host was told a place: the one it had, or one at the next epoch."""
        cell_id, epoch = self.places.get(host, ("", 0))
        assert (grant.cell_id, grant.epoch) == (cell_id, epoch) or grant.epoch == epoch + 1
        self.places[host] = (grant.cell_id, grant.epoch)

    @rule(wait=st.sampled_from(WAITS_MS))
    def wait(self, wait: int) -> None:
        self.world.clock.set(self.world.clock.now_ms() + wait)

    @rule(host=hosts, activity_id=activity_ids, kind=kinds)
    def acquire(self, host: HostId, activity_id: str, kind: Kind) -> None:
        cell_id = self.places.get(host, ("a", 0))[0]
        self.do(AcquireActivity(host, activity_id, kind, cell_id))

    @rule(host=hosts, generation=st.integers(1, 3))
    def activate(self, host: HostId, generation: int) -> None:
        self.do(ActivateControl(host, *self.places.get(host, ("a", 1)), generation))

    @rule(host=hosts, activity_id=activity_ids)
    def release(self, host: HostId, activity_id: str) -> None:
        self.do(ReleaseActivity(host, activity_id))

    @rule(host=hosts, generation=st.integers(1, 3))
    def detach(self, host: HostId, generation: int) -> None:
        cell_id, epoch = self.places.get(host, ("a", 1))
        self.do(ReleaseActivity(host, f"control:{cell_id}:{generation}"))
        self.do(ReleaseActivity(host, f"control-pending:{epoch}"))

    @rule()
    def sweep_leases(self) -> None:
        self.do(ReleaseExpiredLeases())

    @invariant()
    def every_host_is_where_it_was_told(self) -> None:
        rows = self.world.rows("assignments")
        assert {HostId(*row[:2]): (row[2], row[3]) for row in rows} == self.places

    @invariant()
    def no_cell_holds_less_than_nothing(self) -> None:
        for row in self.world.rows("cell_reservations"):
            assert min(row[1:]) >= 0

    @invariant()
    def tables_are_what_the_log_folds_to(self) -> None:
        self.world.check_fold()
        self.world.check_deadlines()


class Placement(Fleet):
    """Everything an operator and hosts may do to capacity."""

    def __init__(self) -> None:
        super().__init__()
        self.admission: dict[str, Admission] = dict.fromkeys(CELLS, "general")

    def expected(self, wanted: Region) -> str | None:
        """Where a new host goes: to the least loaded open cell, of the wanted region first."""
        reserved = self.reserved()
        open_cells = [
            (REGION_OF[it] != wanted, reserved.get(it, 0) / self.capacity[it], it)
            for it in CELLS
            if self.admission[it] == "general" and reserved.get(it, 0) < self.capacity[it]
        ]
        return min(open_cells)[2] if open_cells else None

    @rule(host=hosts, region=st.sampled_from(REGIONS))
    def assign(self, host: HostId, region: Region) -> None:
        expected, known = self.expected(region), self.places.get(host)
        outcome = self.assign_to(host, region)
        if outcome.refusal is not None:
            assert isinstance(outcome.refusal, RelayCapacityExhausted)
            assert known is not None or expected is None
            return
        grant = outcome.answer
        if known is None:
            assert grant.cell_id == expected
        elif grant.epoch > known[1]:
            assert self.admission[grant.cell_id] == "general"

    @rule(host=hosts, cell_id=cell_ids)
    def rebalance(self, host: HostId, cell_id: str) -> None:
        outcome = self.do(RebalanceDormant(host, cell_id))
        if outcome.refusal is None:
            assert outcome.answer.cell_id == cell_id != self.places[host][0]
            self.placed(host, outcome.answer)

    @rule(host=hosts, kind=kinds, delta=st.sampled_from([1, -1]))
    def count(self, host: HostId, kind: Kind, delta: Any) -> None:
        self.do(ChangeActivity(host, kind, delta))

    @rule(cell_id=cell_ids, admission=st.sampled_from(ADMISSIONS))
    def admit(self, cell_id: str, admission: Admission) -> None:
        assert self.do(SetCellAdmission(cell_id, admission)).refusal is None
        self.admission[cell_id] = admission

    @rule(cell_id=cell_ids, capacity=st.integers(0, 8))
    def configure(self, cell_id: str, capacity: int) -> None:
        fits = self.reserved().get(cell_id, 0) <= capacity
        configured = ConfigureCell(settings_of(cell_id, capacity), "general")
        assert (self.do(configured).refusal is None) is fits
        if fits:
            self.capacity[cell_id], self.admission[cell_id] = capacity, "general"

    @rule(cell_id=cell_ids, capacity=st.integers(0, 8))
    def lower(self, cell_id: str, capacity: int) -> None:
        """The inventory may lower a capacity below what is held; then nothing more fits."""
        cells = tuple(
            settings_of(it, capacity if it == cell_id else n) for it, n in self.capacity.items()
        )
        assert self.world.run(ReconcileCells(cells)).refusal is None
        self.capacity[cell_id] = capacity

    @rule()
    def sweep_counts(self) -> None:
        self.do(ReleaseExpiredCounts())


class Leases(Fleet):
    """Only what keeps counters, leases and reserved units in step."""

    @rule(host=hosts, region=st.sampled_from(REGIONS))
    def assign(self, host: HostId, region: Region) -> None:
        self.assign_to(host, region)

    @invariant()
    def every_reserved_unit_is_leased(self) -> None:
        leased = dict.fromkeys(CELLS, 0)
        for row in self.world.rows("activity_leases"):
            leased[row[4]] += row[5]
        for cell_id, reserved_units, leased_units, _ in self.world.rows("cell_reservations"):
            assert reserved_units == leased_units == leased[cell_id]


TestPlacement = Placement.TestCase
TestPlacement.settings = bounded(200, steps=50)
TestLeases = Leases.TestCase
TestLeases.settings = bounded(120, steps=50)
