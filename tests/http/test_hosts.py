"""Hosts over HTTP: what each route does when it succeeds."""

from domain.limits import ACTIVITY_LEASE_MS, DORMANCY_MS
from tests.http.running import NOW, Running


def test_a_host_gets_a_place_and_is_found_there(edge: Running) -> None:
    edge.live_cell()
    granted = edge.assign(preferred_region="us-central1")
    assert granted.status_code == 200
    assert granted.json() == {
        "user_id": "u",
        "relay_host_id": "h",
        "cell_id": "c-1",
        "cell_url": "https://c-1.example",
        "region": "us-central1",
        "epoch": 1,
        "lease_expires_at": NOW + ACTIVITY_LEASE_MS,
    }
    found = edge.operator.get("/v1/hosts/u/h/assignment")
    assert found.json() == granted.json()
    assert found.headers["Log-Position"] == granted.headers["Log-Position"]


def test_a_place_is_verified_or_not(edge: Running) -> None:
    edge.live_cell()
    edge.assign()
    for cell_id, epoch, verified in (("c-1", 1, True), ("c-1", 2, False), ("c-2", 1, False)):
        answer = edge.post("assignment/verification", cell_id=cell_id, epoch=epoch)
        assert answer.json() == {"verified": verified}


def test_a_dormant_host_is_moved(edge: Running) -> None:
    edge.live_cell("c-1")
    edge.assign()
    edge.post("activities/releases", activity_id="control-pending:1")
    edge.clock.set(NOW + DORMANCY_MS)
    edge.live_cell("c-2")
    moved = edge.operator.put("/v1/hosts/u/h/assignment/cell", json={"target_cell_id": "c-2"})
    assert (moved.status_code, moved.json()["cell_id"], moved.json()["epoch"]) == (200, "c-2", 2)


def test_activities_begin_and_end(edge: Running) -> None:
    edge.live_cell()
    edge.assign()
    begun = edge.post("activities", activity_id="splice:1", kind="splice", cell_id="c-1")
    assert begun.status_code == 204
    assert edge.operator.get("/v1/cells/c-1").json()["reserved_requests"] == 3
    ended = edge.post("activities/releases", activity_id="splice:1")
    assert ended.json() == {"released": True}
    assert edge.post("activities/releases", activity_id="splice:1").json() == {"released": False}
    assert edge.operator.get("/v1/cells/c-1").json()["reserved_requests"] == 1


def test_counters_go_up_and_down_and_strangers_are_ignored(edge: Running) -> None:
    edge.live_cell()
    edge.assign()
    assert edge.post("activity-counts", kind="splice", delta=1).status_code == 204
    assert edge.operator.get("/v1/cells/c-1").json()["reserved_requests"] == 3
    assert edge.post("activity-counts", kind="splice", delta=-1).status_code == 204
    assert edge.operator.get("/v1/cells/c-1").json()["reserved_requests"] == 1
    stranger = edge.operator.post(
        "/v1/hosts/x/y/activity-counts", json={"kind": "invite", "delta": 1}
    )
    assert stranger.status_code == 204


def test_a_control_is_activated_and_renewed(edge: Running) -> None:
    edge.live_cell()
    edge.assign()
    active = edge.post("controls", cell_id="c-1", epoch=1, generation=4, idle_regional_rehome=True)
    assert active.json() == {"activity_id": "control:c-1:4"}
    renewed = edge.post(
        "activities/renewals",
        activity_id="control:c-1:4",
        cell_id="c-1",
        expires_at=NOW + ACTIVITY_LEASE_MS + 1,
    )
    assert renewed.status_code == 204
    found = edge.operator.get("/v1/hosts/u/h/assignment").json()
    assert found["lease_expires_at"] == NOW + ACTIVITY_LEASE_MS + 1


def test_ids_keep_every_character_they_may_have(edge: Running) -> None:
    edge.live_cell()
    host = "a.b_c:d@e|f~g+h=i-j/A_z-9"
    granted = edge.assign(host)
    assert granted.json()["user_id"] == "a.b_c:d@e|f~g+h=i-j"
    streams = [it["stream"] for it in edge.operator.get("/v1/log").json()["entries"]]
    assert streams[-1].startswith("assignment:a.b_c%3Ad%40e%7Cf~g%2Bh%3Di-j/")
