"""Sweeps on demand; they run by themselves too."""

from dataclasses import dataclass
from typing import Literal

from app import sweeps
from app.bootstrap import Service
from app.http.access import OPERATOR
from app.http.declaration import NO_BODY, POST, Answer, Endpoint, Parameters
from app.http.operation import LongOperation, Order
from app.outcome import Outcome, replayed
from domain import refusals


class SweepPath(Parameters):
    """What to take back."""

    sweep: Literal["activity-leases", "activity", "region-preferences"]


@dataclass(frozen=True, slots=True)
class Settled:
    """How much a sweep settled."""

    settled: int


async def run(service: Service, order: Order[SweepPath, None]) -> Outcome:
    """Sweep, or tell again what the first sweep under the same key came to."""
    reads, key = service.reads, order.key
    known = await reads.result(key) if key is not None else None
    if known is not None:
        return replayed(known, order.fingerprint)
    outcome = (await sweeps.run(service.writer, order.path.sweep, order.meta)).outcome
    if key is not None and outcome.lasts:
        # After the last turn: a sweep repeated because this was lost finds nothing due.
        request_id, now = order.meta.correlation_id, service.clock.now_ms()
        await reads.keep_result(outcome.result(key, order.fingerprint, request_id, now))
    return outcome


SWEEP = LongOperation(
    "Sweep",
    POST,
    "/v1/sweeps/{sweep}",
    tag="service",
    summary="Take back what nobody renewed, until nothing is due",
    path=SweepPath,
    body=NO_BODY,
    roles=OPERATOR,
    run=run,
    answer=Answer("How much was settled.", model=Settled, shape=Settled, example={"settled": 12}),
    refusals=(refusals.RelayCapacityExhausted,),
)

OPERATIONS: tuple[Endpoint, ...] = (SWEEP,)
