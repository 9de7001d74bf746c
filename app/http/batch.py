"""Many commands in one request: each with its own key, its own status, its own answer.

They are submitted together and in order, so they share turns of the writer. One that is refused
fails alone. What a token may do is judged for each, before the first is submitted.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BaseModel, Field, JsonValue
from pydantic.json_schema import WithJsonSchema
from pydantic_core import to_json

from app.http.call import Call, Sender, key_of
from app.http.declaration import POST, Answer, Body, Endpoint, NoParameters
from app.http.models import Form, examples
from app.http.operation import Operation, Order, Sent
from app.http.problems import (
    CommandQueueFull,
    InternalError,
    UnknownOperation,
    problem,
    refusal_of,
)
from app.http.reply import JSON, Reply
from app.outcome import Outcome
from app.scribe import Request
from domain.refusals import Refusal

BATCH_COMMANDS_MAX = 256
PARAMETERS_MAX = 8
PARAMETER_LENGTH_MAX = 8_192
"""Longer than any endpoint allows, so that a command with one too long fails alone."""
TEMPLATE = "/v1/commands"
REF_PROBLEM = "#/components/schemas/Problem"

log = logging.getLogger("tenure.http")

Text = Annotated[str, Field(max_length=PARAMETER_LENGTH_MAX)]


class BatchedCommand(Form):
    """A command: its operation, and what its own request would say."""

    operation: Text
    path: Annotated[dict[str, Text], Field(max_length=PARAMETERS_MAX)] = Field(default_factory=dict)
    body: JsonValue = None
    idempotency_key: Text | None = None
    if_match: Text | None = None


class BatchForm(Form):
    """Commands in the order in which they are decided."""

    model_config = examples(
        {
            "commands": [
                {
                    "operation": "Assign",
                    "path": {"user_id": "u-17", "relay_host_id": "desktop-1"},
                    "body": {"preferred_region": "us-central1"},
                    "idempotency_key": "3f0c9d8e",
                }
            ]
        }
    )

    commands: Annotated[tuple[BatchedCommand, ...], Field(max_length=BATCH_COMMANDS_MAX)]


class BatchResult(BaseModel):
    """What became of one command: the status, and the answer or the problem, of its own request.

    One that is not decided has no position.
    """

    status: int
    position: int | None = None
    replayed: bool | None = None
    answer: JsonValue = None
    problem: Annotated[
        dict[str, JsonValue] | None, WithJsonSchema({"allOf": [{"$ref": REF_PROBLEM}]})
    ] = None


class BatchAnswer(BaseModel):
    """The results, in the order of the commands."""

    results: list[BatchResult]


RESULTS = {
    "results": [
        {
            "status": 200,
            "position": 12,
            "answer": {
                "user_id": "u-17",
                "relay_host_id": "desktop-1",
                "cell_id": "c-1",
                "cell_url": "https://c-1.example",
                "region": "us-central1",
                "epoch": 1,
                "lease_expires_at": 1_754_000_090_000,
            },
        }
    ]
}


class Ready(NamedTuple):
    """A command that can be submitted; its result goes to `place`."""

    place: int
    operation: Operation[Any, Any]
    order: Order[Any, Any]
    request: Request


@dataclass(frozen=True)
class Batch(Endpoint):
    """Takes every operation that is one command."""

    _: KW_ONLY
    operations: Mapping[str, Operation[Any, Any]]
    body: Body[BatchForm]

    async def reply(self, call: Call) -> Reply:
        sender = await call.sender(self.roles)
        call.query(NoParameters.model_fields)
        sent = await call.body(self.body.bytes_max(call.service.settings))
        commands = self.body.parse(sent).commands
        results: list[dict[str, object]] = [{}] * len(commands)
        ready = []
        for place, command in enumerate(commands):
            try:
                ready.append(await self._ready(place, command, sender))
            except Exception as error:
                results[place] = _failed(error, f"{TEMPLATE}#/commands/{place}", sender)
        futures = call.service.writer.submit_all([it.request for it in ready])
        headers = [JSON]
        for it, future in zip(ready, futures, strict=True):
            try:
                outcome = await future
            except Exception as error:
                results[it.place] = _failed(error, it.operation.at(it.order.path), sender)
            else:
                results[it.place] = _result(it, outcome)
                headers[1:] = [(b"log-position", b"%d" % outcome.position)]
        return Reply(200, headers, orjson.dumps({"results": results}))

    async def _ready(self, place: int, command: BatchedCommand, sender: Sender) -> Ready:
        operation = self.operations.get(command.operation)
        if operation is None:
            raise UnknownOperation
        sender.caller.require_role(operation.roles)
        key = key_of(sender.caller, command.idempotency_key)
        body = to_json(command.body, inf_nan_mode="constants")
        order = await operation.order(sender, Sent(command.path, body, key, command.if_match))
        return Ready(place, operation, order, operation.request(order))


def _result(ready: Ready, outcome: Outcome) -> dict[str, object]:
    operation, order, refusal = ready.operation, ready.order, outcome.refusal
    told: dict[str, object] = {"status": operation.answer.status, "position": outcome.position}
    if outcome.replayed:
        told["replayed"] = True
    if refusal is not None:
        request_id = outcome.request_id or order.meta.correlation_id or ""
        told |= _problem(refusal, operation.at(order.path), request_id)
    elif operation.answer.status != 204:
        told["answer"] = operation.content(outcome)
    return told


def _failed(error: Exception, instance: str, sender: Sender) -> dict[str, object]:
    """The result of a command that was not decided."""
    refusal = refusal_of(error)
    if refusal is None:
        log.error(
            "a command of a batch failed", exc_info=error, extra={"request_id": sender.request_id}
        )
        refusal = InternalError()
    return _problem(refusal, instance, sender.request_id)


def _problem(refusal: Refusal, instance: str, request_id: str) -> dict[str, object]:
    told = problem(refusal, instance, request_id)
    return {"status": told["status"], "problem": told}


def batch(endpoints: Iterable[Endpoint]) -> Batch:
    """The endpoint that takes the commands among these."""
    operations = {it.name: it for it in endpoints if isinstance(it, Operation)}
    return Batch(
        "Batch",
        POST,
        TEMPLATE,
        tag="commands",
        summary="Many commands at once; each is answered by itself",
        path=NoParameters,
        body=Body(BatchForm, bytes_max=lambda settings: settings.batch_body_bytes_max),
        roles=dict(_roles(operations.values())),
        answer=Answer(
            "What became of each.", model=BatchAnswer, example=RESULTS, headers=("Log-Position",)
        ),
        refusals=(CommandQueueFull,),
        operations=operations,
    )


def _roles(operations: Iterable[Operation[Any, Any]]) -> Iterator[tuple[Any, str]]:
    for operation in operations:
        yield from ((role, "as the command's own operation says") for role in operation.roles)
