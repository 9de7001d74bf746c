"""What the relay's paths name, and who may speak for it."""

from functools import partial
from typing import Protocol

from adapters.postgres.reads import Reads
from app.http.access import Lookup
from app.http.declaration import Parameters
from app.http.models import CellIdPath, RelayHostIdPath, UserIdPath
from domain.ids import HostId


class HostPath(Parameters):
    """A host."""

    user_id: UserIdPath
    relay_host_id: RelayHostIdPath

    @property
    def host(self) -> HostId:
        return HostId(self.user_id, self.relay_host_id)


class CellPath(Parameters):
    """A cell."""

    cell_id: CellIdPath


class NamesCell(Protocol):
    """A body that says for which cell it speaks."""

    @property
    def cell_id(self) -> str: ...


class NamesActivity(Protocol):
    """A body about one activity."""

    @property
    def activity_id(self) -> str: ...


def own_host(path: HostPath, _: object) -> str:
    """A client speaks for its own host."""
    return f"{path.user_id}/{path.relay_host_id}"


def own_cell(path: CellPath, _: object) -> str:
    """A cell speaks for itself."""
    return path.cell_id


def named_cell(_: object, form: NamesCell) -> str:
    """A cell speaks for itself, and says so in the body."""
    return form.cell_id


def cell_of_host(path: HostPath, _: object) -> Lookup:
    """A cell may act for a host that is on it, or on none."""
    return partial(_cell_of_host, path.host)


def cell_of_lease(path: HostPath, form: NamesActivity) -> Lookup:
    """A cell may end a lease that weighs on it; one that is gone is nobody's."""
    return partial(_cell_of_lease, path.host, form.activity_id)


async def _cell_of_host(host: HostId, reads: Reads) -> str | None:
    place = (await reads.place(host)).value
    return None if place is None else place.cell_id


async def _cell_of_lease(host: HostId, activity_id: str, reads: Reads) -> str | None:
    return await reads.lease_cell(host, activity_id)
