"""Reading a request's body: its type, its size, its form."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.http.problems import BodyTooLarge, BrokenJson, ContentTypeNotJson, InvalidForm

ERRORS_TOLD_MAX = 20
WHERE_LENGTH_MAX = 100

T = TypeVar("T")


def form_errors(errors: Sequence[Any], *where: str) -> list[dict[str, str]]:
    """Validation errors as a problem tells them."""
    told = []
    for error in errors[:ERRORS_TOLD_MAX]:
        path = ".".join(str(part) for part in (*where, *error["loc"]))
        safe = path.encode("ascii", "backslashreplace").decode()[:WHERE_LENGTH_MAX]
        told.append({"at": safe, "message": error["msg"]})
    return told


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, bytes_max: int) -> bytes:
    """The body as sent. Refuses `content_type_not_json`, `body_too_large`."""
    media_type = headers.get(b"content-type", b"")
    if media_type.partition(b";")[0].strip().lower() != b"application/json":
        raise ContentTypeNotJson
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > bytes_max:
        raise BodyTooLarge(bytes_max=bytes_max)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        if len(body) > bytes_max:
            raise BodyTooLarge(bytes_max=bytes_max)
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    if len(body) > bytes_max:
        raise BodyTooLarge(bytes_max=bytes_max)
    return body


def parse(adapter: TypeAdapter[T], body: bytes) -> T:
    """The body's content. Refuses `broken_json`, `invalid_request`."""
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        told = error.errors(include_url=False, include_input=False, include_context=False)
        if any(it["type"] == "json_invalid" for it in told):
            raise BrokenJson from None
        raise InvalidForm(form_errors(told, "body")) from None
