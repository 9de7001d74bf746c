"""A repeated refusal is the first one byte for byte, its request's id and path too.

It once carried the id of the repeating request, so it was another body than the one kept.
"""

from pathlib import Path

from tests.http.running import running

BODY = {"target_cell_id": "c-1"}


def test_the_problem_is_the_first_requests(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as edge:

        def ask(user_id: str, request_id: str) -> tuple[bytes, str]:
            headers = {"Idempotency-Key": "once", "X-Request-ID": request_id}
            path = f"/v1/hosts/{user_id}/h/assignment/cell"
            answer = edge.operator.put(path, json=BODY, headers=headers)
            assert answer.status_code == 404
            return answer.content, answer.headers["X-Request-ID"]

        first, named = ask("u", "first")
        again, named_again = ask("%75", "second")
        assert b'"request_id":"first"' in first
        assert (again, named, named_again) == (first, "first", "second")
