"""Every operation by its declaration: roles, examples, repeats."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.http.batch import batch
from app.http.declaration import Endpoint
from app.http.operation import Changing, Operation
from app.http.problems import kind_of
from app.http.query import Query
from app.http.surface import OPERATIONS, endpoints
from app.settings import Settings
from domain.refusals import Exhausted
from tests.http.running import NOW, Running

VALUES = {
    "user_id": "u-17",
    "relay_host_id": "desktop-1",
    "cell_id": "c-1",
    "sweep": "activity",
    "code": "broken_json",
}
BOUND = {"client": "u-17/desktop-1", "cell": "c-1"}
STRANGER = {"client": "u-18/desktop-1", "cell": "c-2"}
ROLES: tuple[Any, ...] = ("operator", "client", "cell", "auditor", "developer")
ALL = endpoints(Settings(clock="virtual"))
SINGLE = [it for it in ALL if isinstance(it, Changing | Query)]
"""All but batches, whose commands are judged one by one."""
CHANGING = [it for it in ALL if isinstance(it, Changing)]


def examples(endpoint: Endpoint) -> Iterator[Any]:
    """The bodies that the document shows."""
    if not endpoint.body.forms:
        yield None
    for form in endpoint.body.forms:
        yield from form.model_config["json_schema_extra"]["examples"]


def ask(client: httpx.Client, endpoint: Endpoint, body: Any, key: str = "") -> httpx.Response:
    path = endpoint.template.format_map(VALUES)
    headers = {"Idempotency-Key": key} if key else {}
    with client.stream(endpoint.method, path, json=body, headers=headers) as answer:
        if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
            return answer
        answer.read()
    return answer


def named(endpoint: Endpoint) -> str:
    return endpoint.name


@pytest.mark.parametrize("endpoint", ALL, ids=named)
def test_only_its_roles_are_let_in(edge: Running, endpoint: Endpoint) -> None:
    edge.live_cell()
    body = next(examples(endpoint))
    for role in ROLES:
        answer = ask(edge.client(role, BOUND.get(role)), endpoint, body)
        allowed = not endpoint.roles or role in endpoint.roles
        assert (answer.status_code != 403) is allowed, role
    if endpoint.roles:
        assert "operator" in endpoint.roles
        assert ask(edge.client(None), endpoint, body).status_code == 401


@pytest.mark.parametrize("endpoint", SINGLE, ids=named)
def test_a_bound_token_is_refused_what_is_anothers(edge: Running, endpoint: Endpoint) -> None:
    edge.live_cell()
    edge.operator.post("/v1/hosts/u-17/desktop-1/assignment", json={})
    begun = {"activity_id": "splice:81", "kind": "splice", "cell_id": "c-1"}
    edge.operator.post("/v1/hosts/u-17/desktop-1/activities", json=begun)
    for role in STRANGER.keys() & endpoint.roles.keys():
        stranger: Any = role
        answer = ask(edge.client(stranger, STRANGER[role]), endpoint, next(examples(endpoint)))
        assert (answer.status_code, answer.json()["code"]) == (403, "role_not_allowed")


@pytest.mark.parametrize("endpoint", ALL, ids=named)
def test_its_examples_have_the_right_form(edge: Running, endpoint: Endpoint) -> None:
    edge.live_cell()
    for body in examples(endpoint):
        answer = ask(edge.operator, endpoint, body)
        if answer.is_error:
            refusals = {it.code: it for it in endpoint.refusals}
            assert kind_of(refusals[answer.json()["code"]]).status == answer.status_code
        else:
            statuses = {it.status for it in (endpoint.answer, *endpoint.other_answers)}
            assert answer.status_code in statuses


@pytest.mark.parametrize("prepared", [True, False], ids=["with a cell", "with nothing"])
@pytest.mark.parametrize("endpoint", CHANGING, ids=named)
def test_the_same_key_gets_the_first_answer_whole(
    edge: Running, endpoint: Endpoint, prepared: bool
) -> None:
    """Status, body and headers, unless there was no room: that is tried again."""
    if prepared:
        edge.live_cell()
        edge.operator.post("/v1/hosts/u-17/desktop-1/assignment", json={})
    for number, body in enumerate(examples(endpoint)):
        first = ask(edge.operator, endpoint, body, f"key-{number}")
        head = edge.head()
        edge.clock.set(NOW + 1 + number)
        again = ask(edge.operator, endpoint, body, f"key-{number}")
        assert edge.head() == head
        own = {"x-request-id", "date"}
        if "Retry-After" in first.headers:
            refusals = {it.code: it for it in endpoint.refusals}
            assert issubclass(refusals[first.json()["code"]], Exhausted)
            assert "Idempotency-Replayed" not in again.headers
            continue
        assert (again.status_code, again.content) == (first.status_code, first.content)
        told = {name: it for name, it in again.headers.items() if name not in own}
        assert told.pop("idempotency-replayed") == "true"
        assert told == {name: it for name, it in first.headers.items() if name not in own}
        assert again.headers["X-Request-ID"] != first.headers["X-Request-ID"]


def test_every_operation_that_is_one_command_is_in_batches() -> None:
    commands = {it.name for it in CHANGING if isinstance(it, Operation)}
    assert set(batch(OPERATIONS).operations) == commands
    assert {it.name for it in CHANGING} - commands == {"Sweep"}
