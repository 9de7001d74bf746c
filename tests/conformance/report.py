"""Printing what a conformance run found: a table per operation, and one last line."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.conformance.verdict import Verdict

SHOWN_MAX = 400


def report(verdicts: Sequence[Verdict], console: Console, *, whole: bool) -> bool:
    """Print it; whether everything passed (and, if asked, every trace was reached whole)."""
    steps: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    first: dict[str, Verdict] = {}
    for verdict in verdicts:
        steps.update(verdict.steps)
        passed.update(verdict.passed)
        if verdict.difference is not None:
            first.setdefault(verdict.difference.operation, verdict)
    table = Table("operation", "steps", "passed", "first difference")
    for operation in sorted(steps):
        mark = first[operation].trace.name if operation in first else ""
        table.add_row(operation, str(steps[operation]), str(passed[operation]), mark)
    console.print(table)
    for verdict in first.values():
        _print_difference(verdict, console)
    short = [it for it in verdicts if it.stopped_at is not None]
    for verdict in short:
        console.print(
            f"{verdict.trace.name}: reached step {verdict.reached} of {verdict.trace.steps}, "
            f"{verdict.stopped_at} does not exist yet"
        )
    failed = sum(not it.ok for it in verdicts)
    console.print(
        f"{len(verdicts)} traces, {sum(steps.values())} steps, "
        f"{len(verdicts) - failed} passed, {failed} failed"
        + (f", {len(short)} not reached to their end" if short else "")
    )
    return bool(verdicts) and failed == 0 and not (whole and short)


def _print_difference(verdict: Verdict, console: Console) -> None:
    found = verdict.difference
    assert found is not None
    console.print(f"[bold]{verdict.trace.name}[/] step {found.step}, {found.operation}")
    expected, got = found.expected, found.got
    if isinstance(expected, list) and isinstance(got, list):
        expected, got = _only(expected, got), _only(got, expected)
    for name, value in (("given", found.given), ("expected", expected), ("got", got)):
        console.print(f"  {name:9}{str(value)[:SHOWN_MAX]}", markup=False)


def _only(rows: list[Any], others: list[Any]) -> list[Any]:
    """Of two lists of rows, what is only in the first."""
    return [row for row in rows if row not in others]
