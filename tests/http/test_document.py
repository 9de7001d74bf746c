"""The OpenAPI document: as committed, complete, and with an example of everything."""

from typing import Any

import pytest

from app.http import problems
from domain.relay.decide import RULES
from domain.relay.renewals import RenewControls
from tests.http.golden import DOCUMENT, rendered
from tests.http.running import described

SWEPT = {"LapseConnections", "ReleaseExpiredLeases", "ReleaseExpiredCounts", "ForgetOldPreferences"}


@pytest.fixture(scope="module")
def operations() -> dict[str, dict[str, Any]]:
    """Every route by its operation id."""
    listed = [
        operation for methods in described()["paths"].values() for operation in methods.values()
    ]
    by_id = {operation["operationId"]: operation for operation in listed}
    assert len(by_id) == len(listed)
    return by_id


def test_the_document_is_the_committed_one() -> None:
    assert rendered() == DOCUMENT.read_bytes(), "run: python -m tests.http.golden"


def test_every_command_has_a_route(operations: dict[str, dict[str, Any]]) -> None:
    commands = {command.__name__ for command in (*RULES, RenewControls)} - SWEPT
    assert commands <= set(operations)


def test_requests_answers_and_problems_have_examples(operations: dict[str, dict[str, Any]]) -> None:
    for name, operation in operations.items():
        if "requestBody" in operation:
            shown = operation["requestBody"]["content"]["application/json"]["examples"]
            assert all(it["value"] for it in shown.values()), name
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items():
                if media_type == problems.MEDIA_TYPE:
                    assert content["examples"], (name, status)
                elif media_type == "application/json":
                    assert content["example"], (name, status)


def test_every_problem_is_documented_somewhere(operations: dict[str, dict[str, Any]]) -> None:
    shown = {
        code
        for operation in operations.values()
        for response in operation["responses"].values()
        for code in response.get("content", {}).get(problems.MEDIA_TYPE, {}).get("examples", {})
    }
    never = {"invalid_regional_rehome_cohort", "method_not_allowed", "unknown_operation"}
    assert shown | never == set(problems.BY_CODE)
    assert not shown & never
