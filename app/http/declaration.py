"""What an endpoint says about itself, once.

Routes, the OpenAPI document, the README's table, batches and the tests over all operations read
it; nothing else says it again. `Operation` and `Query` add what is to be done.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from starlette.types import ASGIApp

from adapters.postgres.tokens import BOUND_ROLES, Role
from app.http.bodies import form_errors, parse
from app.http.call import Call
from app.http.problems import InvalidForm
from app.settings import Settings
from domain.refusals import Refusal

Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
GET: Method = "GET"
POST: Method = "POST"
PUT: Method = "PUT"

PATH_CHARACTERS = ":@!$&'()*+,;="
"""What RFC 3986 lets stand in a segment as it is, besides the unreserved."""

F_co = TypeVar("F_co", covariant=True)
M = TypeVar("M", bound="Parameters")


class Parameters(BaseModel):
    """What a path or a query says, each under its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoParameters(Parameters):
    """There is nothing to say."""


class Body(Generic[F_co]):
    """What a request carries: one of these forms, and how large it may be."""

    def __init__(self, *forms: type[F_co], bytes_max: Callable[[Settings], int] | None = None):
        self.forms: tuple[type[Any], ...] = forms
        self.bytes_max = bytes_max or (lambda settings: settings.body_bytes_max)
        kind: Any = reduce(or_, forms) if forms else None
        self._adapter: TypeAdapter[F_co] = TypeAdapter(kind)

    def parse(self, body: bytes) -> F_co:
        """The content. Refuses `broken_json`, `invalid_request`."""
        return parse(self._adapter, body)

    def canonical(self, form: object) -> bytes:
        """The same bytes for the same content, however it was sent."""
        return self._adapter.dump_json(form)  # type: ignore[arg-type]


NO_BODY = Body[None]()


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: its status, the type of its content and an example."""

    description: str
    status: int = 200
    model: type | None = None
    example: object = None
    headers: tuple[str, ...] = ()
    media_type: str = "application/json"
    shape: Callable[..., object] | None = None
    """Makes the content of what the rules answer, when that is not the content itself."""


DONE = Answer("Done; there is nothing to say.", 204)


@dataclass(frozen=True, slots=True)
class Header:
    """A request header that an endpoint takes."""

    name: str
    description: str | None = None
    pattern: str | None = None
    example: str | None = None


@dataclass(frozen=True)
class Endpoint(ABC):
    """An operation over HTTP. `template` is its path, with the names of its parameters."""

    name: str
    method: Method
    template: str
    _: KW_ONLY
    tag: str
    summary: str
    path: type[Parameters]
    query: type[Parameters] = NoParameters
    body: Body[object] = NO_BODY
    roles: Mapping[Role, object]
    answer: Answer = DONE
    other_answers: tuple[Answer, ...] = ()
    refusals: tuple[type[Refusal], ...] = ()
    headers: tuple[Header, ...] = ()

    keyed: ClassVar[bool] = False
    """Whether it takes an idempotency key."""

    def __post_init__(self) -> None:
        named = {part[1:-1] for part in self.template.split("/") if part.startswith("{")}
        assert named == set(self.path.model_fields), self.name
        assert all(self.roles[it] is not None for it in BOUND_ROLES if it in self.roles), self.name

    @abstractmethod
    async def reply(self, call: Call) -> ASGIApp:
        """The answer to a request. Raises `Refusal`, `Unavailable`."""

    @property
    def more_headers(self) -> tuple[Header, ...]:
        """Request headers that follow from the rest of the declaration."""
        return ()

    @property
    def more_refusals(self) -> tuple[type[Refusal], ...]:
        """Refusals that follow from the rest of the declaration."""
        return ()

    @property
    def takes_parameters(self) -> bool:
        """Whether a path or a query can be wrong."""
        return bool(self.path.model_fields or self.query.model_fields)

    def at(self, path: Parameters) -> str:
        """The path of the thing that these parameters name."""
        values = ((name, quote(str(it), safe=PATH_CHARACTERS)) for name, it in path)
        return self.template.format_map(dict(values))


def taken(model: type[M], values: Mapping[str, str], where: str) -> M:
    """Parameters in their types. Refuses `invalid_request`."""
    try:
        return model.__pydantic_validator__.validate_python(values)  # type: ignore[no-any-return]
    except ValidationError as error:
        told = error.errors(include_url=False, include_input=False, include_context=False)
        raise InvalidForm(form_errors(told, where)) from None
