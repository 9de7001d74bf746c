"""Measured cases, the bars they must clear, and how both are shown."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.load import Rate

RESULTS = Path(__file__).parent / "results.json"


@dataclass(frozen=True)
class Case:
    """One measured case. A bar is a name, the value, the bound and whether less is better."""

    name: str
    rate: Rate
    ratio: float | None = None
    per_second_min: float | None = None
    p99_ms_max: float | None = None
    ratio_min: float | None = None
    notes: list[str] = field(default_factory=list)

    def missed(self) -> list[str]:
        """The bars it did not clear."""
        missed = []
        if self.per_second_min is not None and self.rate.per_second < self.per_second_min:
            missed.append(f"{self.rate.per_second:,.0f}/s < {self.per_second_min:,.0f}/s")
        if self.p99_ms_max is not None and self.rate.p99_ms >= self.p99_ms_max:
            missed.append(f"p99 {self.rate.p99_ms:.1f} ms >= {self.p99_ms_max:.0f} ms")
        if self.ratio_min is not None and (self.ratio is None or self.ratio < self.ratio_min):
            missed.append(f"ratio {self.ratio or 0:.2f} < {self.ratio_min}")
        return missed

    def bar(self) -> str:
        parts = []
        if self.per_second_min is not None:
            parts.append(f"≥ {self.per_second_min:,.0f}/s")
        if self.p99_ms_max is not None:
            parts.append(f"p99 < {self.p99_ms_max:.0f} ms")
        if self.ratio_min is not None:
            parts.append(f"ratio ≥ {self.ratio_min}")
        return ", ".join(parts) or "report"


def show(cases: list[Case], console: Console) -> bool:
    """Print the table and write the results; whether every bar was cleared."""
    table = Table("case", "per second", "p50 ms", "p99 ms", "ratio", "bar", "")
    for case in cases:
        rate = case.rate
        table.add_row(
            case.name,
            f"{rate.per_second:,.0f}",
            f"{rate.p50_ms:.2f}" if rate.p50_ms else "",
            f"{rate.p99_ms:.2f}" if rate.p99_ms else "",
            f"{case.ratio:.2f}" if case.ratio is not None else "",
            case.bar(),
            "[red]missed[/]" if case.missed() else "[green]ok[/]",
        )
        for note in case.notes:
            table.add_row(f"  {note}")
    console.print(table)
    RESULTS.write_text(json.dumps([asdict(case) for case in cases], indent=2) + "\n")
    for case in cases:
        for miss in case.missed():
            console.print(f"[red]{case.name}: {miss}[/]")
    return not any(case.missed() for case in cases)
