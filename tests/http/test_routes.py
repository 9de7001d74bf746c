"""The table of routes: what a path as sent leads to."""

from collections.abc import Mapping

import pytest
from starlette.types import ASGIApp

from app.http.access import ANYONE
from app.http.declaration import GET, POST, Endpoint, NoParameters, Parameters
from app.http.query import Asked, Query
from app.http.reply import Reply
from app.http.routes import Routes


class ThingPath(Parameters):
    """One thing."""

    thing: str


class SessionPath(Parameters):
    """A session by an id that may have any character."""

    project: str
    native_id: str


async def nothing(_: Asked[NoParameters, NoParameters, None]) -> ASGIApp:
    return Reply(204, ())


async def thing(_: Asked[ThingPath, NoParameters, None]) -> ASGIApp:
    return Reply(204, ())


async def session(_: Asked[SessionPath, NoParameters, None]) -> ASGIApp:
    return Reply(204, ())


ENDPOINTS: tuple[Endpoint, ...] = (
    Query(
        "Thing",
        GET,
        "/v1/things/{thing}",
        tag="t",
        summary="",
        path=ThingPath,
        roles=ANYONE,
        ask=thing,
    ),
    Query("Newest", GET, "/v1/things/newest", tag="t", summary="", roles=ANYONE, ask=nothing),
    Query("Things", POST, "/v1/things", tag="t", summary="", roles=ANYONE, ask=nothing),
    Query(
        "Session",
        GET,
        "/v1/projects/{project}/sessions/{native_id}",
        tag="t",
        summary="",
        path=SessionPath,
        roles=ANYONE,
        ask=session,
    ),
)
ROUTES = Routes(ENDPOINTS)


@pytest.mark.parametrize(
    ("method", "path", "name", "values"),
    [
        ("GET", "/v1/things/a", "Thing", {"thing": "a"}),
        ("GET", "/v1/things/newest", "Newest", {}),
        ("POST", "/v1/things", "Things", {}),
        ("GET", "/v1/things/a%2Fb", "Thing", {"thing": "a/b"}),
        ("GET", "/v1/things/%25", "Thing", {"thing": "%"}),
        (
            "GET",
            "/v1/projects/p/sessions/a%2F..%2Fb%20c%0A%C3%A9",
            "Session",
            {"project": "p", "native_id": "a/../b c\né"},
        ),
    ],
)
def test_a_path_leads_to_an_endpoint(
    method: str, path: str, name: str, values: Mapping[str, str]
) -> None:
    found = ROUTES.find(method, path)
    assert found is not None
    assert (found[0].name, found[1]) == (name, values)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/things/",
        "/v1/things",
        "/v1/things/a/",
        "/v1/things/a/b",
        "v1/things/a",
        "/v1/things/%FF",
    ],
)
def test_other_paths_lead_nowhere(path: str) -> None:
    assert ROUTES.find("GET", path) is None


def test_a_path_knows_its_methods() -> None:
    assert ROUTES.methods("/v1/things") == ["POST"]
    assert ROUTES.methods("/v1/nowhere") == []


def test_the_path_of_a_thing_leads_back_to_it() -> None:
    path = SessionPath(project="p", native_id="a/b%2F:@é ~")
    session = ENDPOINTS[-1]
    assert session.at(path) == "/v1/projects/p/sessions/a%2Fb%252F:@%C3%A9%20~"
    found = ROUTES.find("GET", session.at(path))
    assert found is not None
    assert SessionPath(**found[1]) == path
