"""Every refusal is specified somewhere: a test names its class where it expects it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain import refusals
from domain.refusals import Conflict, Exhausted, Malformed, NotFound, Refusal

REACTIONS = (Malformed, NotFound, Conflict, Exhausted)
REFUSALS = [
    it
    for it in vars(refusals).values()
    if isinstance(it, type) and issubclass(it, REACTIONS) and it not in REACTIONS
]
EXPECTING = ("then_refused", "raises")


def expected_names() -> Iterator[str]:
    """The first arguments of all calls that expect a refusal, in the tests of the domain."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in EXPECTING and isinstance(first, ast.Name):
                    yield first.id


def test_every_refusal_is_expected_by_a_test() -> None:
    assert {it.__name__ for it in REFUSALS} - set(expected_names()) == set()


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_has_its_own_code_and_title_and_one_reaction(refusal: type[Refusal]) -> None:
    assert "code" in vars(refusal)
    assert "title" in vars(refusal)
    assert sum(issubclass(refusal, reaction) for reaction in REACTIONS) == 1


def test_codes_and_titles_are_told_apart() -> None:
    assert len({it.code for it in REFUSALS}) == len(REFUSALS)
    assert len({it.title for it in REFUSALS}) == len(REFUSALS)


def test_a_refusal_carries_its_facts() -> None:
    refusal = refusals.RelayCapacityExhausted(cell_id="a", reserved_units=2)
    assert refusal.facts == {"cell_id": "a", "reserved_units": 2}
    assert str(refusal) == "relay_capacity_exhausted"
