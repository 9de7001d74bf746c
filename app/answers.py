"""Who waits for a command, and how they are told. Coroutines of one loop are woken together."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from app.outcome import Outcome
from app.scribe import Request

Answer: TypeAlias = Outcome | Exception


@dataclass(slots=True)
class Waiting:
    """A request and the future, of a thread or of an event loop, that gets its outcome.

    `since` is when it came, by the monotonic clock, in seconds.
    """

    request: Request
    future: "Future[Outcome] | asyncio.Future[Outcome]"
    loop: asyncio.AbstractEventLoop | None
    since: float


def waiting_thread(request: Request) -> "tuple[Waiting, Future[Outcome]]":
    future: Future[Outcome] = Future()
    return Waiting(request, future, None, time.monotonic()), future


def waiting_coroutine(
    request: Request, loop: asyncio.AbstractEventLoop
) -> "tuple[Waiting, asyncio.Future[Outcome]]":
    future: asyncio.Future[Outcome] = loop.create_future()
    return Waiting(request, future, loop, time.monotonic()), future


def answer_all(waiting: Sequence[Waiting], answers: Sequence[Answer]) -> None:
    """Give each its answer."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Waiting, Answer]]] = {}
    for one, answer in zip(waiting, answers, strict=True):
        if one.loop is None:
            _tell(one, answer)
        else:
            by_loop.setdefault(one.loop, []).append((one, answer))
    for loop, told in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell_all, told)


def _tell_all(told: list[tuple[Waiting, Answer]]) -> None:
    for one, answer in told:
        _tell(one, answer)


def _tell(one: Waiting, answer: Answer) -> None:
    if one.future.cancelled():
        return
    if isinstance(answer, Exception):
        one.future.set_exception(answer)
    else:
        one.future.set_result(answer)
