"""Random relay commands over few hosts and cells, so that they meet each other."""

import random
from collections.abc import Iterator

from domain.ids import HostId
from domain.limits import REGIONS
from domain.relay.activity import AcquireActivity, ChangeActivity, ReleaseActivity, RenewControl
from domain.relay.assign import Assign
from domain.relay.assignment import KINDS
from domain.relay.cell import admission_of
from domain.relay.command import Command
from domain.relay.control import ActivateControl
from domain.relay.inventory import CellSettings, ReconcileCells, SetCellAdmission
from domain.relay.placement import Grant

CELLS = [f"cell-{letter}" for letter in "abcd"]
HOSTS = [HostId(f"user-{n % 7}", f"host-{n:02}") for n in range(40)]
FLEET = ReconcileCells(
    tuple(
        CellSettings(cell_id, f"https://{cell_id}.test", 30, REGIONS[n % 2])
        for n, cell_id in enumerate(CELLS)
    )
)


def random_commands(seed: int, count: int, grants: dict[HostId, Grant]) -> Iterator[Command]:
    """Mostly sensible commands; `grants` is what the caller learned from the answers so far."""
    choose = random.Random(seed)
    for number in range(count):
        host = choose.choice(HOSTS)
        grant = grants.get(host)
        roll = choose.random()
        if roll < 0.35 or grant is None:
            yield Assign(host, choose.choice([None, *REGIONS]))
        elif roll < 0.55:
            activity_id, kind = f"a-{choose.randrange(4)}", choose.choice(KINDS)
            yield AcquireActivity(host, activity_id, kind, grant.cell_id)
        elif roll < 0.70:
            yield ReleaseActivity(host, f"a-{choose.randrange(4)}")
        elif roll < 0.85:
            yield ActivateControl(host, grant.cell_id, grant.epoch, choose.randrange(3))
        elif roll < 0.90:
            generation = choose.randrange(3)
            control = f"control:{grant.cell_id}:{generation}"
            yield RenewControl(host, control, grant.cell_id, grant.lease_expires_at)
        elif roll < 0.97:
            yield ChangeActivity(host, choose.choice(KINDS), choose.choice((1, -1)))
        else:
            yield SetCellAdmission(choose.choice(CELLS), admission_of(number % 2 == 0))
