"""Cells over HTTP: what each route does when it succeeds."""

from tests.http.running import NOW, Running, heartbeat


def test_an_inventory_is_reconciled_and_missing_cells_are_closed(edge: Running) -> None:
    cells = [{"cell_id": f"c-{n}", "cell_url": f"https://{n}", "capacity_units": 9} for n in (1, 2)]
    done = edge.operator.put("/v1/cells", json={"cells": cells})
    assert done.status_code == 204
    assert edge.operator.put("/v1/cells", json={"cells": cells[:1]}).status_code == 204
    listed = edge.operator.get("/v1/cells").json()["cells"]
    assert [(it["cell_id"], it["admission"]) for it in listed] == [
        ("c-1", "general"),
        ("c-2", "existing-only"),
    ]
    kept = edge.operator.put("/v1/cells", json={"cells": [], "disable_missing": False})
    assert kept.status_code == 204
    assert edge.operator.get("/v1/cells").json()["cells"][0]["admission"] == "general"


def test_a_cell_is_configured_with_a_connection_limit(edge: Running) -> None:
    limit = {"hard_cap_connections": 600, "unobserved_bound_connections": 499}
    edge.configure("c-1", region="asia-east2", connection_limit=limit)
    row = edge.operator.get("/v1/cells").json()["cells"][0]
    assert row["region"] == "asia-east2"
    assert (row["hard_cap_connections"], row["unobserved_bound_connections"]) == (600, 499)
    assert row["ordinary_connections_max"] == 500
    assert row["headroom"] is False
    assert row["live"] is False


def test_the_etag_is_the_streams_version_and_if_match_guards_it(edge: Running) -> None:
    edge.configure("c-1")
    etag = edge.operator.get("/v1/cells/c-1").headers["ETag"]
    assert etag == '"1"'
    body = {"cell_url": "https://c-1.example", "capacity_units": 50, "admission": "general"}

    def put(if_match: str, capacity_units: int, **more: str) -> int:
        told = {**body, "capacity_units": capacity_units}
        headers = {"If-Match": if_match, **more}
        return edge.operator.put("/v1/cells/c-1", json=told, headers=headers).status_code

    assert put(etag, 60) == 204
    assert edge.operator.get("/v1/cells/c-1").headers["ETag"] == '"2"'
    assert put(etag, 70) == 412
    assert put('"1", "2"', 70) == 204
    assert put("*", 80) == 204
    refused = edge.operator.put("/v1/cells/c-2", json=body, headers={"If-Match": "*"})
    assert (refused.status_code, refused.json()["version"]) == (412, 0)
    assert put('W/"4"', 90) == 400


def test_a_repeated_conditional_configuration_gets_its_first_answer(edge: Running) -> None:
    edge.configure("c-1")
    body = {"cell_url": "https://c-1.example", "capacity_units": 7, "admission": "general"}
    headers = {"If-Match": '"1"', "Idempotency-Key": "once"}
    first = edge.operator.put("/v1/cells/c-1", json=body, headers=headers)
    again = edge.operator.put("/v1/cells/c-1", json=body, headers=headers)
    assert (first.status_code, again.status_code) == (204, 204)
    assert again.headers["Idempotency-Replayed"] == "true"


def test_admission_takes_a_state_or_the_older_flag(edge: Running) -> None:
    edge.configure("c-1")
    for body, admission in (
        ({"admission": "migration-only"}, "migration-only"),
        ({"enabled": True}, "general"),
        ({"enabled": False}, "existing-only"),
    ):
        assert edge.operator.put("/v1/cells/c-1/admission", json=body).status_code == 204
        status = edge.operator.get("/v1/cells/c-1").json()
        assert status["admission_state"] == admission
    both = edge.operator.put(
        "/v1/cells/c-1/admission", json={"enabled": True, "admission": "general"}
    )
    assert both.status_code == 422


def test_a_heartbeat_makes_a_cell_live_and_a_probe_origin(edge: Running) -> None:
    edge.configure("c-1")
    assert edge.client(None).get("/v1/regions").json() == {"regions": []}
    assert edge.beat().status_code == 204
    regions = edge.client(None).get("/v1/regions").json()["regions"]
    assert regions == [{"region": "us-central1", "probe_origins": ["https://c-1.example"]}]
    status = edge.operator.get("/v1/cells/c-1").json()
    assert status["runtime"]["last_heartbeat_at"] == NOW
    assert status["runtime"]["heartbeat_fresh"] is True


def test_a_limited_cell_reports_connections_and_has_headroom(edge: Running) -> None:
    limit = {"hard_cap_connections": 600, "unobserved_bound_connections": 100}
    edge.configure("c-1", connection_limit=limit)
    counts = {"total_connections": 5, "in_flight_connections": 1, "reserved_connections": 2}
    told = {**counts, "enforced_connections": 8, "inclusion_watermark": 3, **limit}
    assert edge.beat(connections=told).status_code == 204
    row = edge.operator.get("/v1/cells").json()["cells"][0]
    assert (row["enforced_connections"], row["headroom"]) == (8, True)
    capacity = edge.operator.get("/v1/cells/c-1").json()["connection_capacity"]
    assert capacity["ordinary_connection_limit"] == 500


def test_rehome_status_shows_the_protocol_of_the_running_incarnation(edge: Running) -> None:
    edge.live_cell()
    told = {
        "cell_incarnation": heartbeat()["cell_incarnation"],
        "regional_rehome_protocol": 2,
        "observed_at": NOW,
        "sql_failures": 0,
        "reconnects": 0,
        "control_activity_recovery_failures": 0,
        "database_pool_waiting": 0,
        "database_pool_waiters_max": 0,
        "database_pool_wait_ms_max": 0,
    }
    assert edge.operator.post("/v1/cells/c-1/rehome-status", json=told).status_code == 204
    assert edge.operator.get("/v1/cells/c-1").json()["runtime"]["regional_rehome_protocol"] == 2


def test_bulk_renewals_answer_each_item_by_itself(edge: Running) -> None:
    edge.live_cell()
    edge.assign()
    control = edge.post("controls", cell_id="c-1", epoch=1, generation=1).json()["activity_id"]
    item = {"user_id": "u", "relay_host_id": "h", "activity_id": control, "expires_at": NOW + 9}
    items = [
        item,
        {**item, "user_id": "nobody"},
        {**item, "activity_id": "control:c-1:9"},
        {**item, "activity_id": ""},
        {**item, "expires_at": NOW},
    ]
    answer = edge.operator.post("/v1/cells/c-1/renewals", json={"items": items})
    assert answer.json() == {
        "renewed": 1,
        "refused": [
            {"index": 1, "code": "assignment_not_found"},
            {"index": 2, "code": "control_activity_not_found"},
            {"index": 3, "code": "invalid_activity_id"},
            {"index": 4, "code": "invalid_activity_expiry"},
        ],
    }


def test_two_thousand_renewals_fit_in_one_body(edge: Running) -> None:
    edge.live_cell()
    item = {
        "user_id": "u" * 100,
        "relay_host_id": "h" * 30,
        "activity_id": "control:c-1:1",
        "expires_at": NOW + 9,
    }
    answer = edge.operator.post("/v1/cells/c-1/renewals", json={"items": [item] * 2_000})
    assert len(answer.json()["refused"]) == 2_000
    more = edge.operator.post("/v1/cells/c-1/renewals", json={"items": [item] * 2_001})
    assert more.status_code == 422
