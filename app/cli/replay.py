"""`tenure replay`: feed recorded traces through HTTP and compare every answer."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import httpx
import orjson
import typer
from rich.progress import Progress as Bar

from adapters.postgres.server import Server
from app.cli.cells import fleet_table
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    Failed,
    console,
    failures_told,
    opened,
    progress_bar,
    say,
    say_json,
    settings_of,
)
from app.cli.replay_answers import answer_of, recorded
from app.cli.replay_requests import NOT_HTTP, ROUTES, request_of
from app.cli.replay_service import throw_away_service
from app.cli.replay_trace import Trace, UnreadableTrace, read_trace, traces_of


@dataclass(frozen=True, slots=True)
class Difference:
    """The first answer that was not the recorded one."""

    step: int
    operation: str
    given: Any
    expected: Any
    got: Any


@dataclass(slots=True)
class Replayed:
    """How far a trace went over HTTP and what the fleet looks like afterwards."""

    trace: str
    steps: int
    reached: int = 0
    stopped_at: str | None = None
    """The first operation without a route."""
    same: int = 0
    different: int = 0
    skipped: list[str] = field(default_factory=list)
    """Steps of the recording harness itself, in order."""
    first_difference: Difference | None = None
    cells: list[dict[str, Any]] = field(default_factory=list)


def replay(
    traces: Annotated[list[Path], typer.Argument(help="Trace files, or folders of them.")],
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Replay recorded traces over HTTP, each on an empty throw-away database."""
    with failures_told():
        try:
            found = [read_trace(path) for path in traces_of(traces)]
        except UnreadableTrace as error:
            raise Failed(str(error)) from error
        if not found:
            raise Failed("there are no traces")
        with opened(settings_of(database_url, data_dir)) as server, progress_bar() as bar:
            results = [_replayed(trace, server, bar) for trace in found]
    if as_json:
        say_json({"traces": [asdict(it) for it in results]})
    else:
        for it in results:
            _show(it)
    if any(it.different for it in results):
        raise typer.Exit(1)


def _replayed(trace: Trace, server: Server, bar: Bar) -> Replayed:
    task = bar.add_task(trace.name, total=len(trace.steps), rate="")
    with (
        TemporaryDirectory(prefix="tenure-replay-") as folder,
        throw_away_service(server, Path(folder), trace.config, trace.start) as client,
    ):
        result = Replayed(trace.name, len(trace.steps))
        now = trace.start
        for step in trace.steps:
            if step["op"] not in ROUTES and step["op"] not in NOT_HTTP:
                result.stopped_at = step["op"]
                break
            result.reached += 1
            if step["now"] != now:
                now = step["now"]
                _must(client.put("/v1/clock", json={"now_ms": now}))
            _take(step, client, result)
            bar.update(task, completed=result.reached)
        result.cells = _must(client.get("/v1/cells")).json()["cells"]
    return result


def _take(step: dict[str, Any], client: httpx.Client, result: Replayed) -> None:
    """Perform one step and note whether the answer is the recorded one."""
    operation, expected = step["op"], recorded(step)
    if operation in NOT_HTTP:
        result.skipped.append(operation)
        return
    method, path, body = request_of(operation, step["args"])
    response = client.request(method, path, **({} if body is None else {"json": body}))
    got = answer_of(operation, response, expected)
    if got == expected:
        result.same += 1
        return
    result.different += 1
    if result.first_difference is None:
        result.first_difference = Difference(step["i"], operation, step["args"], expected, got)


def _must(response: httpx.Response) -> httpx.Response:
    if response.is_error:
        request = response.request
        raise Failed(f"{request.method} {request.url.path}: {response.status_code}")
    return response


def _show(result: Replayed) -> None:
    if result.stopped_at is not None:
        reached = f"reached step {result.reached} of {result.steps}"
        say(f"{result.trace}: {reached}, {result.stopped_at} has no route yet")
    else:
        say(f"{result.trace}: all {result.steps} steps")
    if result.skipped:
        say(f"skipped, being no HTTP commands: {', '.join(result.skipped)}")
    console().print(fleet_table(result.cells))
    say(f"answers as recorded: {result.same}, different: {result.different}")
    first = result.first_difference
    if first is not None:
        say(f"first difference, step {first.step} {first.operation}:")
        for name in ("given", "expected", "got"):
            say(f"  {name:<9}{orjson.dumps(getattr(first, name)).decode()}")
