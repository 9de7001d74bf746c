"""What every stored event is. Changing a stored field needs a version and an upcaster."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

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

    if not TYPE_CHECKING:  # the type checker sees the fields as arguments

        def __init__(self, **fields: Any) -> None:
            """Take the fields as they are: rules have typed them, and the type checker knows.

            What is read back is validated; so is, in the tests, everything that a rule records.
            """
            defaults, names = _fields_of(type(self))
            object.__setattr__(self, "__dict__", {**defaults, **fields})
            object.__setattr__(self, "__pydantic_fields_set__", names)
            object.__setattr__(self, "__pydantic_extra__", None)
            object.__setattr__(self, "__pydantic_private__", None)

        # Else pydantic would call it for what it has validated itself.
        __init__.__pydantic_base_init__ = True


@cache
def _fields_of(event: type[Event]) -> tuple[dict[str, Any], set[str]]:
    """The fields in the order in which they are stored, with their defaults; their names."""
    fields = event.model_fields
    return {name: it.get_default() for name, it in fields.items()}, set(fields)
