"""What every stored event is. Changing a stored field needs a version and an upcaster."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class Fact(BaseModel):
    """A frozen value inside an event."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Event(Fact):
    """Something that happened and stays true.

    `topic` and `version` are stored, the Python path never is. `upcasters[n]` turns the stored
    fields of version n into those of version n + 1.
    """

    topic: ClassVar[str]
    version: ClassVar[int] = 1
    upcasters: ClassVar[Mapping[int, Upcaster]] = {}

    at: int
    """The command's clock, epoch ms."""
