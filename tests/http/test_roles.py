"""Who may speak for what, and what is known of tokens."""

from typing import Any

import httpx
import psycopg
import pytest

from adapters.postgres import tokens
from app.tokens import CACHE_SECONDS_MAX
from tests.http.running import NOW, Running


def test_a_client_speaks_for_its_own_host_only(edge: Running) -> None:
    edge.live_cell()
    own, other = edge.client("client", "u/h"), edge.client("client", "u/x")
    assert own.post("/v1/hosts/u/h/assignment", json={}).status_code == 200
    for client, host in ((other, "u/h"), (own, "u/x")):
        refused = client.post(f"/v1/hosts/{host}/assignment", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "role_not_allowed")
        assert client.get(f"/v1/hosts/{host}/assignment").status_code == 403


def test_a_cell_speaks_for_itself_only(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.live_cell("c-2")
    other = edge.client("cell", "c-2")
    beat = {
        "cell_url": "https://c-1.example",
        "cell_incarnation": "x",
        "started_at": NOW,
        "ready": True,
        "observed_requests": 0,
    }
    assert other.post("/v1/cells/c-1/heartbeats", json=beat).status_code == 403
    assert other.post("/v1/cells/c-1/renewals", json={"items": []}).status_code == 403
    assert other.get("/v1/cells/c-1").status_code == 403
    assert other.get("/v1/cells/c-2").status_code == 200


def test_a_cell_acts_for_the_hosts_on_it(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.assign()
    edge.live_cell("c-2")
    own, other = edge.client("cell", "c-1"), edge.client("cell", "c-2")

    def post(client: httpx.Client, path: str, **body: Any) -> int:
        return client.post(f"/v1/hosts/u/h/{path}", json=body).status_code

    activity = {"activity_id": "invite:1", "kind": "invite", "cell_id": "c-1"}
    assert post(other, "activities", **activity) == 403
    assert post(own, "activities", **activity) == 204
    assert post(other, "activities/releases", activity_id="invite:1") == 403
    assert post(own, "activities/releases", activity_id="invite:1") == 200
    assert post(other, "activities/releases", activity_id="invite:1") == 200
    assert post(other, "activity-counts", kind="invite", delta=1) == 403
    assert post(own, "activity-counts", kind="invite", delta=1) == 204
    control = {"cell_id": "c-1", "epoch": 1, "generation": 1}
    assert post(other, "controls", **control) == 403
    assert post(own, "controls", **control) == 200
    renewal = {"activity_id": "control:c-1:1", "cell_id": "c-1", "expires_at": NOW + 1}
    assert post(other, "activities/renewals", **renewal) == 403
    assert post(own, "activities/renewals", **renewal) == 204
    assert post(own, "assignment/verification", cell_id="c-1", epoch=1) == 200
    assert post(other, "assignment/verification", cell_id="c-1", epoch=1) == 403
    assert post(own, "assignment") == 403


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Basic dTpw", "Bearer unknown", "Bearer " + "x" * 600, "Bearer \xff"],
)
def test_anything_but_a_known_token_is_refused(unchanged: Running, header: str) -> None:
    sent = {b"Authorization": header.encode("latin-1")}
    answer = unchanged.client(None).get("/v1/cells", headers=sent)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_revoked_token_ends_within_seconds(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, token_id = edge.token("auditor")
    headers = {"Authorization": f"Bearer {token}"}
    client = edge.client(None)
    assert client.get("/v1/cells", headers=headers).status_code == 200
    with psycopg.connect(edge.dsn, autocommit=True) as connection:
        connection.execute(tokens.REVOKE.encode(), {"at": NOW, "token_id": token_id})
    assert client.get("/v1/cells", headers=headers).status_code == 200
    later = edge.service.tokens._seconds() + CACHE_SECONDS_MAX
    monkeypatch.setattr(edge.service.tokens, "_seconds", lambda: later)
    assert client.get("/v1/cells", headers=headers).status_code == 401


def test_only_hashes_are_stored(edge: Running) -> None:
    token, _ = edge.token("developer")
    with psycopg.connect(edge.dsn) as connection:
        stored = connection.execute("SELECT tokens::text FROM tokens").fetchall()
    assert token.encode().hex() not in str(stored)
    assert token + '"' not in str(stored)


def test_the_local_token_is_an_operators_and_private(unchanged: Running) -> None:
    path = unchanged.service.settings.data_dir / "token"
    assert path.stat().st_mode & 0o777 == 0o600
    headers = {"Authorization": f"Bearer {path.read_text().strip()}"}
    assert unchanged.client(None).post("/v1/sweeps/activity", headers=headers).is_success
