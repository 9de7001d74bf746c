"""The OpenAPI document: what each route takes and answers, with an example of everything.

A route says what it is once, in `operation(…)`; statuses that follow from that (a body can be too
large, a role can be wrong) are added here and nowhere else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from adapters.postgres.tokens import Role
from app.http import problems
from app.http.models import example
from app.outcome import KeyReused
from domain.refusals import Refusal

Parts: TypeAlias = dict[str, Any]
ByStatus: TypeAlias = dict[int | str, Parts]
Refusals: TypeAlias = Iterable[type[Refusal]]
Forms: TypeAlias = tuple[type[BaseModel], ...]

REF = "#/components/schemas/{model}"
POSITION = {"type": "integer", "minimum": 0}
HEADERS: Mapping[str, Parts] = {
    "X-Request-ID": {"description": "The request's id.", "schema": {"type": "string"}},
    "Log-Position": {"description": "The log's position.", "schema": POSITION},
    "Idempotency-Replayed": {
        "description": "The answer is the first one to this idempotency key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}},
    "ETag": {"description": "The version.", "schema": {"type": "string"}},
    "Link": {"description": "The next page.", "schema": {"type": "string"}},
    "Cache-Control": {"description": "How long to keep it.", "schema": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: its status, the type of its content and an example."""

    description: str
    status: int = 200
    model: Any = None
    example: Any = None
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"


DONE = Answer("Done; there is nothing to say.", 204)
COMMAND_HEADERS = ("Log-Position", "Idempotency-Replayed")


@dataclass(frozen=True, slots=True)
class Described:
    """All that a route says about itself."""

    name: str
    summary: str
    tag: str
    answers: tuple[Answer, ...]
    roles: tuple[Role, ...] = ()
    forms: Forms = ()
    refusals: tuple[type[Refusal], ...] = ()
    command: bool = False
    takes_parameters: bool = True
    headers: tuple[Parts, ...] = field(default=())


def operation(described: Described) -> Parts:
    """The arguments of the route's decorator."""
    parts: Parts = {"parameters": [*_request_headers(described), *described.headers]}
    if described.roles:
        parts["security"] = [{"bearer": []}]
        parts["x-roles"] = list(described.roles)
    if described.forms:
        parts["requestBody"] = _request_body(described.forms)
    responses = {answer.status: _answer(answer, described) for answer in described.answers}
    return {
        "operation_id": described.name,
        "summary": described.summary,
        "tags": [described.tag],
        "status_code": described.answers[0].status,
        "response_model": None,
        "response_class": Response,
        "responses": {**responses, **_problems(described)},
        "openapi_extra": parts,
    }


def _request_headers(described: Described) -> list[Parts]:
    headers = [
        ("X-Request-ID", "Returned, and stored with what the request changes."),
        ("traceparent", "W3C trace context; returned and stored if it is well-formed."),
    ]
    listed: list[Parts] = [
        {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
        for name, text in headers
    ]
    if described.command:
        listed.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": (
                    "Makes a repeated request answer as the first one did; after an answer "
                    "with Retry-After it is a new attempt."
                ),
                "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
                "example": "3f0c9d8e",
            }
        )
    return listed


def _request_body(forms: Forms) -> Parts:
    refs = [{"$ref": REF.format(model=form.__name__)} for form in forms]
    named = {form.__name__: {"value": example(form)} for form in forms}
    content = {"schema": refs[0] if len(refs) == 1 else {"oneOf": refs}, "examples": named}
    return {"required": True, "content": {"application/json": content}}


def _answer(answer: Answer, described: Described) -> Parts:
    names = ("X-Request-ID", *answer.headers, *(COMMAND_HEADERS if described.command else ()))
    told: Parts = {
        "description": answer.description,
        "headers": {name: HEADERS[name] for name in names},
    }
    if answer.model is not None:
        told["model"] = answer.model
    if answer.example is not None:
        told["content"] = {answer.media_type: {"example": answer.example}}
    elif answer.media_type != "application/json":
        told["content"] = {answer.media_type: {"schema": {"type": "string"}}}
    return told


def _problems(described: Described) -> ByStatus:
    """The problems a route can answer, by status."""
    by_status: dict[int, list[type[Refusal]]] = {}
    for refusal in (*described.refusals, *_implied(described)):
        by_status.setdefault(problems.kind_of(refusal).status, []).append(refusal)
    return {status: _problem(listed) for status, listed in sorted(by_status.items())}


def _implied(described: Described) -> Refusals:
    yield problems.InternalError
    if described.takes_parameters or described.forms:
        yield problems.InvalidRequest
    if described.roles:
        yield from (problems.TokenNotAccepted, problems.RoleNotAllowed, problems.LogUnavailable)
    if described.forms:
        yield from (problems.BrokenJson, problems.BodyTooLarge, problems.ContentTypeNotJson)
    if described.command:
        yield from (problems.BadIdempotencyKey, KeyReused, problems.CommandQueueFull)


def _problem(listed: list[type[Refusal]]) -> Parts:
    shown = {
        it.code: {
            "summary": it.title,
            "value": problems.problem(it(), "/v1/…", "5f1c0b7a9d2e4c6b8a0f1d3e"),
        }
        for it in listed
    }
    names = ["X-Request-ID"]
    if any(problems.kind_of(it).retry_after_seconds for it in listed):
        names.append("Retry-After")
    return {
        "description": "; ".join(f"`{it.code}`" for it in listed),
        "headers": {name: HEADERS[name] for name in names},
        "content": {
            problems.MEDIA_TYPE: {
                "schema": {"$ref": REF.format(model="Problem")},
                "examples": shown,
            }
        },
    }


PROBLEM_SCHEMA: Parts = {
    "type": "object",
    "description": "RFC 9457, with the code, the request's id and the facts of the refusal.",
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "/problems/ and the code."},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "enum": sorted(problems.BY_CODE)},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["at", "message"],
                "properties": {"at": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}


def document(app: FastAPI, forms: Forms) -> Parts:
    """The whole document."""
    told: Parts = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
    )
    components = told.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    _, definitions = models_json_schema([(form, "validation") for form in forms], ref_template=REF)
    schemas.update(definitions["$defs"])
    schemas["Problem"] = PROBLEM_SCHEMA
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return told
