"""HTTP answers in the words of the recording."""

from typing import Any

import httpx

RECORDED_CODES = {"cell_url_taken": "sql_constraint"}
"""Named refusals here that the original leaves to its storage."""
_MEMBERS = {
    "activateControl": "activity_id",
    "regionCatalog": "regions",
    "releaseActivity": "released",
    "releaseExpiredActivity": "settled",
    "releaseExpiredActivityLeases": "settled",
    "releaseExpiredRegionPreferences": "settled",
    "verifyCellAssignment": "verified",
}
"""Where the recorded answer is one member of ours."""
_NAMES = {"epoch": "assignmentEpoch"}


def recorded(step: dict[str, Any]) -> dict[str, Any]:
    """What the original answered: `ok` or `err`."""
    return {name: step[name] for name in ("ok", "err") if name in step}


def answer_of(operation: str, response: httpx.Response, expected: dict[str, Any]) -> Any:
    """What the service answered, as the original would have said it."""
    if response.is_error:
        return _refused(operation, response, expected)
    body: Any = response.json() if response.content else None
    if operation in _MEMBERS:
        body = body[_MEMBERS[operation]]
    return {"ok": _camel(body)}


def _refused(operation: str, response: httpx.Response, expected: dict[str, Any]) -> Any:
    told = response.json()
    code = told["code"]
    if operation == "resolve" and code == "assignment_not_found":
        return {"ok": None}
    if code == "invalid_request" and str(expected.get("err", "")).startswith("invalid_"):
        # The edge refuses by form what the original refuses by rule.
        return expected
    got = {"err": RECORDED_CODES.get(code, code)}
    return {**got, "errors": told["errors"]} if "errors" in told else got


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if isinstance(value, dict):
        return {_NAMES.get(name, _name(name)): _camel(item) for name, item in value.items()}
    return value


def _name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
