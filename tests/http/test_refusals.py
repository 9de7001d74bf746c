"""Every refusal code over HTTP is the problem that its route documents."""

import html
import re
from typing import Any

import httpx
import pytest

from app.http import problems
from tests.http.refusal_cases import CASES
from tests.http.running import Running, described

NOT_OVER_HTTP = {
    "activity_lease_shape_mismatch": "a control lease weighs one unit in every history",
    "invalid_regional_rehome_cohort": "a setting, refused at start",
    "unknown_operation": "in the results of a batch only",
}


def responses_of(document: dict[str, Any], request: httpx.Request) -> dict[str, Any]:
    """What the document says about the route that a request went to."""
    for path, methods in document["paths"].items():
        pattern = re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", re.escape(path))
        if re.fullmatch(pattern, request.url.path):
            operation = methods.get(request.method.lower(), {"responses": {}})
            responses: dict[str, Any] = operation["responses"]
            return responses
    return {}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return described()


@pytest.mark.parametrize("code", sorted(CASES))
def test_a_refusal_is_its_documented_problem(
    code: str, edge: Running, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]
) -> None:
    answer = CASES[code](edge, monkeypatch)
    refusal = problems.BY_CODE[code]
    kind = problems.kind_of(refusal)
    assert (answer.json()["code"], answer.status_code) == (code, kind.status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert told["type"] == f"/problems/{code}"
    assert told["title"] == refusal.title
    assert told["status"] == kind.status
    assert told["instance"] == answer.request.url.path
    assert told["request_id"] == answer.headers["X-Request-ID"]
    assert told["detail"].startswith(refusal.title)
    retry_after = kind.retry_after_seconds
    assert answer.headers.get("Retry-After") == (str(retry_after) if retry_after else None)
    if code != "method_not_allowed":
        shown = responses_of(document, answer.request)[str(kind.status)]
        assert code in shown["content"]["application/problem+json"]["examples"]


def test_no_code_is_left_out() -> None:
    assert set(CASES) | set(NOT_OVER_HTTP) == set(problems.BY_CODE)


def test_the_facts_of_a_refusal_are_members(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.live_cell("c-2")
    body = {"cell_url": "https://c-1.example", "capacity_units": 1, "admission": "general"}
    told = edge.operator.put("/v1/cells/c-2", json=body).json()
    assert (told["cell_id"], told["taken_by"]) == ("c-2", "c-1")
    assert told["detail"] == "Another cell has this URL: cell_id is c-2, taken_by is c-1."


def test_every_problem_has_a_page(unchanged: Running) -> None:
    for code, refusal in problems.BY_CODE.items():
        page = unchanged.client(None).get(f"/problems/{code}")
        assert page.headers["Content-Type"].startswith("text/html")
        assert code in page.text
        assert html.escape(refusal.title) in page.text


def test_a_wrong_method_is_told_all_that_are_allowed(unchanged: Running) -> None:
    assert unchanged.operator.delete("/v1/cells").headers["Allow"] == "GET, PUT"


def test_a_path_that_is_nowhere_is_a_problem_too(unchanged: Running) -> None:
    answer = unchanged.operator.get("/v1/nowhere")
    assert (answer.status_code, answer.json()["code"]) == (404, "route_not_found")
