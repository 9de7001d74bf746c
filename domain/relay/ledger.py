"""What an event does to cells: units taken and given back, within capacity (contract 3)."""

from domain.refusals import RelayCapacityExhausted
from domain.relay.assignment import Shift
from domain.relay.turn import Load, Turn


class Ledger:
    """Adds up what one event does to the cells it touches."""

    __slots__ = ("_loads", "_turn", "_units")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._loads: dict[str, Load] = {}
        self._units: dict[str, int] = {}

    def load(self, cell_id: str) -> Load:
        return self._loads.get(cell_id) or self._turn.load(cell_id)

    def reserve(self, cell_id: str, units: int) -> None:
        """Take units of a cell. Refuses `relay_capacity_exhausted` above its capacity."""
        self._require_capacity(cell_id, self.load(cell_id).reserved_units + units)
        self._shift(cell_id, units)

    def release(self, cell_id: str, units: int) -> None:
        """Give units of a cell back; the cell never goes below zero."""
        self._shift(cell_id, -units)

    def release_within_capacity(self, cell_id: str, units: int) -> None:
        """Give units back where the original also insists that the rest fits the capacity.

        Refuses `relay_capacity_exhausted` when a lowered capacity is still exceeded.
        """
        self._require_capacity(cell_id, self.load(cell_id).reserved_units - units)
        self._shift(cell_id, -units)

    def recount(self, cell_id: str) -> None:
        """Repair: reserve what the cell's leases weigh. Refuses `relay_capacity_exhausted`."""
        load = self.load(cell_id)
        self._require_capacity(cell_id, load.leased_units)
        self._shift(cell_id, load.leased_units - load.reserved_units)

    def lease(self, cell_id: str, units: int) -> None:
        """Change the units that leases hold on a cell."""
        reserved, leased, connections = self.load(cell_id)
        self._set(cell_id, 0, Load(reserved, leased + units, connections))

    def connect(self, cell_id: str, count: int) -> None:
        """Change the number of outstanding connection reservations of a cell."""
        reserved, leased, connections = self.load(cell_id)
        self._set(cell_id, 0, Load(reserved, leased, connections + count))

    def shifts(self) -> tuple[Shift, ...]:
        return tuple([Shift(key, self._units[key], *load) for key, load in self._loads.items()])

    def _shift(self, cell_id: str, units: int) -> None:
        reserved, leased, connections = self.load(cell_id)
        self._set(cell_id, units, Load(max(0, reserved + units), leased, connections))

    def _set(self, cell_id: str, units: int, load: Load) -> None:
        self._loads[cell_id] = load
        self._units[cell_id] = self._units.get(cell_id, 0) + units

    def _require_capacity(self, cell_id: str, reserved_units: int) -> None:
        cell = self._turn.require_cell(cell_id)
        if reserved_units > cell.capacity_units:
            raise RelayCapacityExhausted(
                cell_id=cell_id,
                capacity_units=cell.capacity_units,
                reserved_units=self._turn.load(cell_id).reserved_units,
            )
