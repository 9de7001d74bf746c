"""Which endpoint a request goes to: a lookup in a table, whatever the number of endpoints.

Paths are matched as sent, so `%2F` in a segment is a part of its value and not a separator.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from app.http.declaration import Endpoint

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

Shape: TypeAlias = tuple[int, ...]
"""Where a template has literal segments."""
Key: TypeAlias = tuple[str, int, Shape, tuple[str, ...]]
"""Method, number of segments, where the literal ones stand, and which they are."""


class Route(NamedTuple):
    """An endpoint, and where the values of its parameters stand."""

    endpoint: Endpoint
    names: tuple[tuple[str, int], ...]


class Routes:
    """The table of all endpoints."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._routes: dict[Key, Route] = {}
        self._shapes: dict[tuple[str, int], list[Shape]] = {}
        for endpoint in endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        segments = endpoint.template.split("/")
        named = {place: it[1:-1] for place, it in enumerate(segments) if it.startswith("{")}
        shape = tuple(place for place in range(len(segments)) if place not in named)
        shapes = self._shapes.setdefault((endpoint.method, len(segments)), [])
        if shape not in shapes:
            shapes.append(shape)
            shapes.sort(key=len, reverse=True)  # a literal segment wins over a parameter
        key = _key(endpoint.method, segments, shape)
        assert key not in self._routes, endpoint.template
        names = tuple((name, place) for place, name in named.items())
        self._routes[key] = Route(endpoint, names)

    def find(self, method: str, path: str) -> tuple[Endpoint, Mapping[str, str]] | None:
        """The endpoint at a path as it was sent, with the texts of its parameters."""
        segments = path.split("/")
        for shape in self._shapes.get((method, len(segments)), ()):
            route = self._routes.get(_key(method, segments, shape))
            if route is not None:
                values = {name: _decoded(segments[place]) for name, place in route.names}
                return (route.endpoint, values) if all(values.values()) else None
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path has."""
        return [method for method in METHODS if self.find(method, path)]


def _key(method: str, segments: list[str], shape: Shape) -> Key:
    return (method, len(segments), shape, tuple([segments[place] for place in shape]))


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return ""  # names nothing
