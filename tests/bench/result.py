"""Measured cases, the bars they must clear, and how both are shown."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.load import Rate

RESULTS = Path(__file__).parent / "results.json"


@dataclass(frozen=True)
class Bar:
    """A value, and the bound that it must reach or not exceed."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def missed(self) -> bool:
        return (self.at_least is not None and self.value < self.at_least) or (
            self.at_most is not None and self.value > self.at_most
        )

    def __str__(self) -> str:
        sign, bound = ("≥", self.at_least) if self.at_most is None else ("≤", self.at_most)
        color = "red" if self.missed else "green"
        return f"[{color}]{_figure(self.value)}[/] {self.name} ({sign} {_figure(bound or 0)})"


@dataclass(frozen=True)
class Case:
    """One measured case; without bars, a report."""

    name: str
    rate: Rate | None = None
    bars: tuple[Bar, ...] = ()
    notes: tuple[str, ...] = ()


def show(cases: Sequence[Case], console: Console) -> bool:
    """Print the table; whether every bar was cleared."""
    table = Table("case", "per second", "p50 ms", "p99 ms", "judged")
    for case in cases:
        rate = case.rate or Rate(0)
        figures = [f"{rate.per_second:,.0f}", f"{rate.p50_ms:.2f}", f"{rate.p99_ms:.2f}"]
        shown = [it if float(it.replace(",", "")) else "" for it in figures]
        table.add_row(case.name, *shown, "\n".join([*map(str, case.bars), *case.notes]))
    console.print(table)
    return not any(bar.missed for case in cases for bar in case.bars)


def keep(cases: Sequence[Case]) -> None:
    """Write the results down, to be compared with later ones."""
    RESULTS.write_text(json.dumps([asdict(case) for case in cases], indent=2) + "\n")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
