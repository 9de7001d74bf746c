"""Commands over a small fleet, so that they often meet: three hosts, three cells, few ids.

`a` has no connection limit, `b` has one, `c` is in Asia. Most commands are aimed right, at the
cell, epoch and time that the host they are about is at; some miss.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from hypothesis import strategies as st

from domain.ids import HostId
from domain.limits import REGIONS, Region
from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign, RebalanceDormant
from domain.relay.assignment import KINDS
from domain.relay.cell import Admission
from domain.relay.command import Command
from domain.relay.connection import LapseConnections
from domain.relay.control import ActivateControl
from domain.relay.expiry import ForgetOldPreferences, ReleaseExpiredCounts, ReleaseExpiredLeases
from domain.relay.heartbeat import ConnectionReport, RecordHeartbeat, RecordRehomeStatus
from domain.relay.inventory import CellSettings, ConfigureCell, ReconcileCells, SetCellAdmission
from domain.relay.policy import Policy
from domain.relay.renewals import Renewal, RenewControls
from tests.properties.world import Step, World

T = TypeVar("T")
Commands: TypeAlias = st.SearchStrategy[Command]

HOSTS = [HostId("ada", "desktop"), HostId("ada", "laptop"), HostId("bob", "desktop")]
CELLS = ["a", "b", "c"]
ADMISSIONS: list[Admission] = ["existing-only", "migration-only", "general"]
SHORT_MS = [0, 0, 1, 1_000, 20_000]
WAITS_MS = [*SHORT_MS, 45_000, 60_000, 90_000, 690_000, 86_400_000, 30 * 86_400_000 + 1]
REGION_OF: dict[str, Region] = {"a": "us-central1", "b": "us-central1", "c": "asia-east2"}

hosts = st.sampled_from(HOSTS)
cell_ids = st.sampled_from(CELLS)
regions = st.sampled_from([None, *REGIONS])
admissions = st.sampled_from(["general", *ADMISSIONS])
kinds = st.sampled_from(KINDS)
capacities = st.sampled_from([6, 9, 4, 2, 0])
incarnations = st.sampled_from([("one", 10), ("one", 10), ("one", 10), ("two", 20)])
watermarks = st.sampled_from([None, 1, 5, 9])
policies = st.builds(Policy, require_live_cells=st.booleans())


def mostly(right: T, *wrong: T) -> st.SearchStrategy[T]:
    return st.sampled_from([right] * (5 * len(wrong)) + [*wrong])


class Aim(NamedTuple):
    """A host, the cell and epoch it is at, and the time (epoch ms)."""

    host: HostId
    cell_id: str
    epoch: int
    now: int

    def cell(self) -> st.SearchStrategy[str]:
        return mostly(self.cell_id, *CELLS)

    def epochs(self) -> st.SearchStrategy[int]:
        return mostly(self.epoch, self.epoch + 1)

    def activity_id(self) -> st.SearchStrategy[str]:
        known = [f"control:{self.cell_id}:{n}" for n in (1, 2)]
        return st.sampled_from(["x", "y", f"control-pending:{self.epoch}", *known, *known, ""])

    def expiry(self) -> st.SearchStrategy[int]:
        return st.sampled_from([self.now + it for it in (90_000, 105_000, 120_000, 120_001, 1, 0)])


def aim(world: World, host: HostId) -> Aim:
    place = world.store.place(host)
    here = ("a", 1) if place is None else (place.cell_id, place.epoch)
    return Aim(host, *here, world.clock.now_ms())


def settings_of(cell_id: str, capacity: int, bound: int = 50) -> CellSettings:
    limit = (600, bound) if cell_id == "b" else (None, None)
    return CellSettings(
        cell_id, f"https://{cell_id}.test", capacity, REGION_OF[cell_id], True, *limit
    )


def _inventory(cells: Sequence[str], capacity: int, disable_missing: bool) -> Command:
    return ReconcileCells(
        tuple(settings_of(it, capacity) for it in dict.fromkeys(cells)), disable_missing
    )


def _heartbeat(
    cell_id: str,
    incarnation: tuple[str, int],
    ready: bool,
    observed: int,
    connections: int,
    watermark: int | None,
) -> Command:
    told = ConnectionReport()
    if cell_id == "b":
        told = ConnectionReport(connections, 0, 0, connections, watermark, 600, 50)
    return RecordHeartbeat(
        cell_id,
        f"https://{cell_id}.test",
        *incarnation,
        ready,
        observed,
        REGION_OF[cell_id],
        told,
    )


def _status(cell_id: str, incarnation: tuple[str, int]) -> Command:
    return RecordRehomeStatus(cell_id, incarnation[0], 3, 5, 0, 1, 2, 3, 4, 5)


def _renewals(at: Aim) -> Commands:
    item = st.builds(Renewal, *(mostly(it, "x") for it in at.host), at.activity_id(), at.expiry())
    return st.builds(RenewControls, at.cell(), st.lists(item, max_size=4).map(tuple))


COMMANDS: Mapping[type[Command], Callable[[Aim], Commands]] = {
    ReconcileCells: lambda at: st.builds(
        _inventory, st.lists(cell_ids, min_size=1, max_size=4), capacities, mostly(False, True)
    ),
    ConfigureCell: lambda at: st.builds(
        ConfigureCell, st.builds(settings_of, at.cell(), capacities), admissions
    ),
    SetCellAdmission: lambda at: st.builds(SetCellAdmission, at.cell(), admissions),
    RecordHeartbeat: lambda at: st.builds(
        _heartbeat,
        at.cell(),
        incarnations,
        mostly(True, False),
        st.integers(0, 5),
        mostly(0, 449, 450),
        mostly(None, 3, 7, 11),
    ),
    RecordRehomeStatus: lambda at: st.builds(_status, at.cell(), incarnations),
    Assign: lambda at: st.builds(Assign, st.just(at.host), regions, regions),
    RebalanceDormant: lambda at: st.builds(RebalanceDormant, st.just(at.host), cell_ids),
    ChangeActivity: lambda at: st.builds(
        ChangeActivity, st.just(at.host), kinds, st.sampled_from([1, -1])
    ),
    AcquireActivity: lambda at: st.builds(
        AcquireActivity,
        st.just(at.host),
        at.activity_id(),
        kinds,
        at.cell(),
        st.none() | at.expiry(),
    ),
    ReleaseActivity: lambda at: st.builds(ReleaseActivity, st.just(at.host), at.activity_id()),
    RenewControl: lambda at: st.builds(
        RenewControl, st.just(at.host), at.activity_id(), at.cell(), at.expiry()
    ),
    ActivateControl: lambda at: st.builds(
        ActivateControl,
        st.just(at.host),
        at.cell(),
        at.epochs(),
        st.sampled_from([1, 2]),
        st.booleans(),
        st.sampled_from(["", "one"]),
        watermarks,
    ),
    LapseConnections: lambda at: st.just(LapseConnections()),
    ReleaseExpiredLeases: lambda at: st.just(ReleaseExpiredLeases()),
    ReleaseExpiredCounts: lambda at: st.just(ReleaseExpiredCounts()),
    ForgetOldPreferences: lambda at: st.just(ForgetOldPreferences()),
    RenewControls: _renewals,
}
"""Commands of every type, about a host that is somewhere."""

OFTEN = (Assign, ActivateControl, AcquireActivity, RecordHeartbeat, ReleaseActivity)
BEGINNING = (
    Step(0, _inventory(CELLS, 6, True)),
    *(Step(0, _heartbeat(cell_id, ("one", 10), True, 0, 0, 0)) for cell_id in CELLS),
    *(Step(0, Assign(host)) for host in HOSTS[:2]),
)


class History(NamedTuple):
    """A policy, and what happened under it."""

    policy: Policy
    steps: Sequence[Step]

    def world(self) -> World:
        """A world in which it has happened."""
        world = World(self.policy)
        for step in self.steps:
            world.take(step)
        return world


@st.composite
def histories(draw: st.DrawFn, max_size: int = 25) -> History:
    """A fleet that was heard, and what happened then: half of it in quick succession."""
    world = World(draw(policies))
    steps = list(BEGINNING)
    for step in steps:
        world.take(step)
    for _ in range(draw(st.integers(max_size // 2, max_size))):
        wait = draw(st.sampled_from(SHORT_MS) | st.sampled_from(WAITS_MS))
        kind = draw(st.sampled_from(OFTEN) | st.sampled_from([*COMMANDS]))
        at = aim(world, draw(hosts))
        step = Step(wait, draw(COMMANDS[kind](at._replace(now=at.now + wait))))
        world.take(step)
        steps.append(step)
    return History(world.policy, steps)
