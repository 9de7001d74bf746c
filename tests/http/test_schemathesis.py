"""Requests made from the OpenAPI document, right and wrong, to a running service.

The seed is fixed. Whatever is sent: no mistake of the service, no status, header or content that
the document does not tell.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import CheckContext, GenerationMode, Response
from schemathesis.checks import not_a_server_error, positive_data_acceptance

from tests.http.running import Running, described

EXAMPLES_EACH = 12
SEED = 20_250_801
ENDLESS = "/v1/log/stream"
SCHEMA = schemathesis.openapi.from_dict(described()).exclude(path=ENDLESS)
RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE


def operations() -> Iterator[tuple[str, Any, GenerationMode]]:
    """Every route with right requests, and with wrong ones if it takes anything to be wrong in."""
    for result in SCHEMA.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]
        yield operation.label, operation, RIGHT
        if operation.path_parameters or operation.query or operation.body:
            yield operation.label, operation, WRONG


CASES = list(operations())
EXCLUDED = [
    not_a_server_error,  # `no_mistake` allows 503
    positive_data_acceptance,  # the rules refuse what has the right form, and 1.0 is not 1
]


def no_mistake(_: CheckContext, response: Response, __: Any) -> None:
    """The service may be without room, it may not fail."""
    assert response.status_code < 500 or response.status_code == 503


@pytest.fixture(scope="module")
def session() -> Any:
    with requests.Session() as opened:
        yield opened


@pytest.mark.parametrize(
    ("operation", "mode"),
    [it[1:] for it in CASES],
    ids=[f"{label} {mode.value}" for label, _, mode in CASES],
)
def test_any_request_gets_a_documented_answer(
    operation: Any, mode: GenerationMode, fuzzed: Running, session: requests.Session
) -> None:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES_EACH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        case.call_and_validate(
            base_url=fuzzed.url,
            session=session,
            headers={"Authorization": fuzzed.operator.headers["Authorization"]},
            additional_checks=[no_mistake],
            excluded_checks=EXCLUDED,
            timeout=10,
        )

    ask()
