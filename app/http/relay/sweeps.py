"""Sweeps on demand; they run by themselves too."""

from dataclasses import dataclass
from typing import Literal

from app import sweeps
from app.bootstrap import Service
from app.http.access import OPERATOR
from app.http.declaration import NO_BODY, POST, Answer, Endpoint, Parameters
from app.http.operation import LongOperation, Order
from app.outcome import Outcome
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
    name, key, fingerprint = order.path.sweep, order.key, order.fingerprint
    return await sweeps.run(service.writer, name, order.meta, key, fingerprint)


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
