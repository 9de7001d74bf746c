"""The README's command table, from the OpenAPI document: `python -m tests.http.readme_table`."""

import json
from pathlib import Path
from typing import Any

from app.http.problems import ClockGoesBack, EdgeRefusal, TooManyStreams
from app.outcome import KeyReused
from domain.refusals import Refusal

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCUMENT = ROOT / "tests" / "golden" / "openapi.json"
BEGIN = "<!-- commands: written by `python -m tests.http.readme_table` -->\n"
END = "<!-- end of commands -->"
EDGE: tuple[type[Refusal], ...] = (KeyReused, *EdgeRefusal.__subclasses__())
ANY_COMMAND = {it.code for it in EDGE} - {ClockGoesBack.code, TooManyStreams.code}
"""Problems of the edge, which the README names once for all."""


REMARKS = {"SetClock": " (with `--clock virtual` only)"}


def table() -> str:
    """A row for each operation: command, method and path, roles, refusals."""
    rows = ["| command | method and path | roles | refusals |", "| --- | --- | --- | --- |"]
    for path, methods in json.loads(DOCUMENT.read_text())["paths"].items():
        for method, operation in methods.items():
            roles = ", ".join(operation.get("x-roles", ["anyone"]))
            codes = ", ".join(f"`{code}`" for code in refusals(operation))
            name = operation["operationId"] + REMARKS.get(operation["operationId"], "")
            rows.append(f"| {name} | `{method.upper()} {path}` | {roles} | {codes} |")
    return "\n".join(rows) + "\n"


def refusals(operation: dict[str, Any]) -> list[str]:
    """The codes of an operation's own refusals."""
    codes: list[str] = []
    for answer in operation["responses"].values():
        problem = answer.get("content", {}).get("application/problem+json", {})
        codes += problem.get("examples", {})
    return [code for code in codes if code not in ANY_COMMAND]


def with_table(text: str) -> str:
    """The README with the table as it should be."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + table() + END + tail


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
