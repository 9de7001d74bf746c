"""What requests and answers are made of: every text, number and list has a bound."""

from typing import Annotated, Any, TypeAlias

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from domain.limits import SAFE_INTEGER_MAX

TEXT_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""No control characters; PostgreSQL cannot store U+0000, and no rule needs the others."""
USER_ID_PATTERN = r"^[A-Za-z0-9._:@|~+=-]{1,256}$"
RELAY_HOST_ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
CELL_ID_PATTERN = r"^[A-Za-z0-9._-]{1,128}$"
INCARNATION_LENGTH_MAX = 256
URL_LENGTH_MAX = 2_048
ACTIVITY_ID_TEXT_LENGTH_MAX = 1_024
"""Longer than the rules allow, so that they say no and not the form."""


class Form(BaseModel):
    """A request's body: nothing unknown in it, and no value taken for another type's."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def one_of(*allowed: int) -> Any:
    """A check for the allowed whole numbers; unlike a literal it takes no 1.0 or true."""

    def check(value: int) -> int:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(str(it) for it in allowed)}")
        return value

    return AfterValidator(check)


def example(model: type[BaseModel] | None) -> Any:
    """The first example of a model."""
    extra: Any = model.model_config.get("json_schema_extra") if model else None
    return extra["examples"][0] if extra else None


def examples(*values: JsonValue) -> ConfigDict:
    """The configuration that gives a model its examples."""
    return ConfigDict(json_schema_extra={"examples": list(values)})


Count: TypeAlias = Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)]
EpochMs: TypeAlias = Annotated[
    int, Field(ge=0, le=SAFE_INTEGER_MAX, description="Epoch milliseconds.")
]
CellId: TypeAlias = Annotated[str, Field(pattern=CELL_ID_PATTERN)]
UserId: TypeAlias = Annotated[str, Field(pattern=USER_ID_PATTERN)]
RelayHostId: TypeAlias = Annotated[str, Field(pattern=RELAY_HOST_ID_PATTERN)]
Url: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=URL_LENGTH_MAX, pattern=TEXT_PATTERN)
]
Incarnation: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=INCARNATION_LENGTH_MAX, pattern=TEXT_PATTERN)
]
ActivityId: TypeAlias = Annotated[
    str, Field(max_length=ACTIVITY_ID_TEXT_LENGTH_MAX, pattern=TEXT_PATTERN)
]

UserIdPath: TypeAlias = Annotated[str, Path(pattern=USER_ID_PATTERN, examples=["u-17"])]
RelayHostIdPath: TypeAlias = Annotated[
    str, Path(pattern=RELAY_HOST_ID_PATTERN, examples=["desktop-1"])
]
CellIdPath: TypeAlias = Annotated[str, Path(pattern=CELL_ID_PATTERN, examples=["c-1"])]
