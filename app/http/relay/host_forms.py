"""Bodies and answers about hosts."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from pydantic.json_schema import WithJsonSchema

from app.http.models import (
    INCARNATION_LENGTH_MAX,
    TEXT_PATTERN,
    ActivityId,
    CellId,
    Count,
    EpochMs,
    Form,
    examples,
    one_of,
)
from domain.limits import Region
from domain.relay.assignment import Kind


class AssignForm(Form):
    """Where the host would like to be; all optional."""

    model_config = examples({"preferred_region": "us-central1"}, {})

    preferred_region: Region | None = None
    placement_region: Region | None = None


class VerificationForm(Form):
    """A place that somebody claims the host has."""

    model_config = examples({"cell_id": "c-1", "epoch": 1})

    cell_id: CellId
    epoch: Count


class TargetForm(Form):
    """The cell to move to."""

    model_config = examples({"target_cell_id": "c-2"})

    target_cell_id: CellId


class ActivityCountForm(Form):
    """One counter, up or down by one."""

    model_config = examples({"kind": "splice", "delta": 1})

    kind: Kind
    delta: Annotated[int, one_of(1, -1), WithJsonSchema({"type": "integer", "enum": [1, -1]})]


class ActivityForm(Form):
    """An activity to begin or renew; without `expires_at` it gets a full lease."""

    model_config = examples(
        {
            "activity_id": "splice:81",
            "kind": "splice",
            "cell_id": "c-1",
            "expires_at": 1_754_000_090_000,
        }
    )

    activity_id: ActivityId
    kind: Kind
    cell_id: CellId
    expires_at: EpochMs | None = None


class ReleaseForm(Form):
    """An activity to end."""

    model_config = examples({"activity_id": "splice:81"})

    activity_id: ActivityId


class RenewForm(Form):
    """A control to extend."""

    model_config = examples(
        {"activity_id": "control:c-1:3", "cell_id": "c-1", "expires_at": 1_754_000_090_000}
    )

    activity_id: ActivityId
    cell_id: CellId
    expires_at: EpochMs


class ControlForm(Form):
    """A host's control that became live on a cell."""

    model_config = examples(
        {
            "cell_id": "c-1",
            "epoch": 1,
            "generation": 3,
            "idle_regional_rehome": True,
            "cell_incarnation": "c-1-boot-7",
            "inclusion_watermark": 4_712,
        }
    )

    cell_id: CellId
    epoch: Count
    generation: Count
    idle_regional_rehome: bool = False
    cell_incarnation: Annotated[
        str, Field(max_length=INCARNATION_LENGTH_MAX, pattern=TEXT_PATTERN)
    ] = ""
    inclusion_watermark: Count | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a claimed place is the host's."""

    verified: bool


@dataclass(frozen=True, slots=True)
class Released:
    """Whether there was such an activity."""

    released: bool


@dataclass(frozen=True, slots=True)
class Activated:
    """The activity id of a live control."""

    activity_id: str
