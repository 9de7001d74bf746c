"""The OpenAPI document: what each route takes and answers, with an example of everything.

Endpoints say what they are; statuses that follow from that (a body can be too large, a role can be
wrong) are added here and nowhere else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeAlias, get_type_hints

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from app.http import problems
from app.http.declaration import Answer, Endpoint, Header, Parameters
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


ANY_REQUEST = (
    Header("X-Request-ID", "Returned, and stored with what the request changes."),
    Header("traceparent", "W3C trace context; returned and stored if it is well-formed."),
)
IDEMPOTENCY_KEY = Header(
    "Idempotency-Key",
    "Makes a repeated request answer as the first one did; after a Retry-After, a new attempt.",
    "^[!-~]{1,255}$",
    "3f0c9d8e",
)
COMMAND_HEADERS = ("Log-Position", "Idempotency-Replayed")


def _route(endpoint: Endpoint) -> APIRoute:
    """The endpoint as FastAPI describes one; it is not called."""

    async def described(**_: object) -> None: ...

    parameters = (*_parameters(endpoint.path), *_parameters(endpoint.query))
    described.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    parts: Parts = {"parameters": [*_request_headers(endpoint)]}
    if endpoint.roles:
        parts["security"] = [{"bearer": []}]
        parts["x-roles"] = list(endpoint.roles)
    if endpoint.body.forms:
        parts["requestBody"] = _request_body(endpoint.body.forms)
    answers = (endpoint.answer, *endpoint.other_answers)
    responses: ByStatus = {answer.status: _answer(answer, endpoint) for answer in answers}
    return APIRoute(
        endpoint.template,
        described,
        methods=[endpoint.method],
        operation_id=endpoint.name,
        summary=endpoint.summary,
        tags=[endpoint.tag],
        status_code=endpoint.answer.status,
        response_model=None,
        response_class=Response,
        responses={**responses, **_problems(endpoint)},
        openapi_extra=parts,
    )


def _parameters(model: type[Parameters]) -> Iterator[Parameter]:
    annotations = get_type_hints(model, include_extras=True)
    for name, it in model.model_fields.items():
        default = Parameter.empty if it.is_required() else it.default
        yield Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotations[name], default=default)


def _request_headers(endpoint: Endpoint) -> Iterator[Parts]:
    yield from (_header(it) for it in ANY_REQUEST)
    if endpoint.keyed:
        yield _header(IDEMPOTENCY_KEY)
    yield from (_header(it) for it in (*endpoint.headers, *endpoint.more_headers))


def _header(header: Header) -> Parts:
    schema = {"type": "string", "pattern": header.pattern}
    told: Parts = {
        "name": header.name,
        "in": "header",
        "description": header.description,
        "schema": {name: it for name, it in schema.items() if it is not None},
        "example": header.example,
    }
    return {name: it for name, it in told.items() if it is not None}


def _request_body(forms: Forms) -> Parts:
    refs = [{"$ref": REF.format(model=form.__name__)} for form in forms]
    named = {form.__name__: {"value": example(form)} for form in forms}
    content = {"schema": refs[0] if len(refs) == 1 else {"oneOf": refs}, "examples": named}
    return {"required": True, "content": {"application/json": content}}


def _answer(answer: Answer, endpoint: Endpoint) -> Parts:
    names = ("X-Request-ID", *answer.headers, *(COMMAND_HEADERS if endpoint.keyed else ()))
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


def _problems(endpoint: Endpoint) -> ByStatus:
    """The problems an endpoint can answer, by status."""
    by_status: dict[int, list[type[Refusal]]] = {}
    listed = (*endpoint.refusals, *endpoint.more_refusals, *_implied(endpoint))
    for refusal in dict.fromkeys(listed):
        by_status.setdefault(problems.kind_of(refusal).status, []).append(refusal)
    return {status: _problem(listed) for status, listed in sorted(by_status.items())}


def _implied(endpoint: Endpoint) -> Refusals:
    yield problems.InternalError
    if endpoint.takes_parameters or endpoint.body.forms:
        yield problems.InvalidRequest
    if endpoint.roles:
        yield from (problems.TokenNotAccepted, problems.RoleNotAllowed, problems.LogUnavailable)
    if endpoint.body.forms:
        yield from (problems.BrokenJson, problems.BodyTooLarge, problems.ContentTypeNotJson)
    if endpoint.keyed:
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


def document(app: FastAPI, endpoints: Sequence[Endpoint]) -> Parts:
    """The whole document."""
    told: Parts = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=[_route(it) for it in endpoints],
    )
    components = told.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    forms = [form for it in endpoints for form in it.body.forms]
    _, definitions = models_json_schema([(form, "validation") for form in forms], ref_template=REF)
    schemas.update(definitions["$defs"])
    schemas["Problem"] = PROBLEM_SCHEMA
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return told
