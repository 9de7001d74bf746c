"""The service itself: health, metrics, the clock, sweeps, restores, starting and ending."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psycopg
import pytest

from adapters.clock import CountedIds
from adapters.ports import Unavailable
from app.bootstrap import prepare
from app.workers.sweeps import RESULTS_KEPT_MS, Sweeper
from domain.limits import ACTIVITY_LEASE_MS, REGION_PREFERENCE_RETENTION_MS
from domain.refusals import RelayCapacityExhausted
from tests.http.running import NOW, Running, running

LEAVE_SECONDS_MAX = 5.0


def test_a_ready_service_lists_its_checks(unchanged: Running) -> None:
    client = unchanged.client(None)
    assert client.get("/readyz").json() == {"ready": True, "checks": None}
    checks = {it["name"]: it for it in client.get("/readyz?verbose").json()["checks"]}
    assert all(it["passed"] for it in checks.values())
    assert set(checks) == {
        "serving",
        "writer",
        "tail",
        "database",
        "durability",
        "unsafe_durability_allowed",
        "migrations",
    }
    assert checks["unsafe_durability_allowed"]["detail"] == "yes"


def test_without_its_database_the_service_lives_but_is_not_ready(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("away")

    monkeypatch.setattr(edge.service.reads, "_all", away)
    client = edge.client(None)
    assert client.get("/livez").text == "alive"
    answer = client.get("/readyz?verbose")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert answer.json()["checks"][-1]["detail"] == "does not answer: away"
    assert client.get("/v1/regions").json()["code"] == "log_unavailable"


def test_metrics_count_answers_by_operation(edge: Running) -> None:
    edge.assign()
    edge.operator.get("/nowhere")
    text = edge.client(None).get("/metrics").text
    assert 'tenure_http_requests_total{operation="Assign",status="503"} 1.0' in text
    assert 'tenure_http_requests_total{operation="unmatched",status="404"} 1.0' in text


def test_a_virtual_clock_goes_forward(edge: Running) -> None:
    assert edge.operator.put("/v1/clock", json={"now_ms": NOW + 5}).status_code == 204
    assert edge.clock.now_ms() == NOW + 5


def test_the_machines_clock_cannot_be_set(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, clock="system") as edge:
        refused = edge.operator.put("/v1/clock", json={"now_ms": NOW})
        assert (refused.status_code, refused.json()["code"]) == (404, "route_not_found")


def test_no_local_token_when_others_can_reach_the_server(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, host="0.0.0.0"):
        assert not (tmp_path / "token").exists()


def test_sweeps_take_back_what_nobody_renewed(edge: Running) -> None:
    edge.live_cell()
    for number in range(3):
        edge.assign(f"u/{number}", preferred_region="us-central1")
    edge.operator.post("/v1/hosts/u/0/activity-counts", json={"kind": "invite", "delta": 1})
    assert edge.operator.post("/v1/sweeps/activity-leases").json() == {"settled": 0}
    edge.clock.set(NOW + ACTIVITY_LEASE_MS)
    assert edge.operator.post("/v1/sweeps/activity-leases").json() == {"settled": 3}
    edge.clock.set(NOW + 3 * ACTIVITY_LEASE_MS)
    assert edge.operator.post("/v1/sweeps/activity").json() == {"settled": 1}
    edge.clock.set(NOW + REGION_PREFERENCE_RETENTION_MS + 1)
    assert edge.operator.post("/v1/sweeps/region-preferences").json() == {"settled": 3}
    assert edge.operator.post("/v1/sweeps/everything").status_code == 422


def test_a_repeated_sweep_gets_its_first_answer(edge: Running) -> None:
    edge.live_cell()
    edge.assign()
    edge.clock.set(NOW + ACTIVITY_LEASE_MS)
    headers = {"Idempotency-Key": "k"}
    first = edge.operator.post("/v1/sweeps/activity-leases", headers=headers)
    again = edge.operator.post("/v1/sweeps/activity-leases", headers=headers)
    assert (first.json(), again.json()) == ({"settled": 1}, {"settled": 1})
    assert again.headers["Idempotency-Replayed"] == "true"
    other = edge.operator.post("/v1/sweeps/activity", headers=headers)
    assert other.json()["code"] == "idempotency_key_reused"


def test_a_lost_volatile_row_comes_back_with_a_full_lease(edge: Running) -> None:
    edge.live_cell()
    edge.assign("u/lost")
    edge.assign("u/kept")
    edge.operator.post(
        "/v1/hosts/u/kept/activities",
        json={"activity_id": "a", "kind": "invite", "cell_id": "c-1", "expires_at": NOW + 1},
    )
    later = NOW + 7 * ACTIVITY_LEASE_MS
    ends = later + ACTIVITY_LEASE_MS
    with psycopg.connect(edge.dsn, autocommit=True) as connection:
        connection.execute("DELETE FROM assignment_liveness WHERE relay_host_id = 'lost'")
        connection.execute("UPDATE assignment_liveness SET deadlines = deadlines - 'a'")
        prepare(edge.dsn, later)
        prepare(edge.dsn, later + 1)
        rows = connection.execute(
            "SELECT relay_host_id, lease_expires_at, last_activity_at, next_deadline_at, deadlines "
            "FROM assignment_liveness ORDER BY relay_host_id"
        ).fetchall()
    pending = "control-pending:1"
    kept, lost = rows
    assert lost == ("lost", ends, later, ends, {pending: [ends, later]})
    assert kept[4] == {pending: [NOW + ACTIVITY_LEASE_MS, NOW], "a": [ends, later]}


class TestSweeper:
    """All sweeps, in one process at a time."""

    def sweeper(self, edge: Running) -> Sweeper:
        it = edge.service
        return Sweeper(it.server.dsn, it.writer, it.reads, it.telemetry, it.clock, CountedIds(), 30)

    def test_one_process_sweeps_until_it_ends(self, edge: Running) -> None:
        one, other = self.sweeper(edge), self.sweeper(edge)

        async def scenario() -> list[bool]:
            ran = [await one.run_once(), await other.run_once(), await one.run_once()]
            await one.stop()
            ran.append(await other.run_once())
            await other.stop()
            return ran

        assert edge.run(scenario()) == [True, False, True, True]

    def test_a_failing_sweep_stops_no_other(
        self, edge: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        swept: list[str] = []

        async def sweep(_: object, name: str, __: object) -> int:
            swept.append(name)
            if name == "activity-leases":
                raise RelayCapacityExhausted
            return 4

        monkeypatch.setattr("app.workers.sweeps.sweep", sweep)
        sweeper = self.sweeper(edge)

        async def scenario() -> None:
            await sweeper.run_once()
            await sweeper.stop()

        edge.run(scenario())
        assert swept == ["activity-leases", "activity", "region-preferences"]
        text = edge.client(None).get("/metrics").text
        assert 'tenure_sweep_failures_total{sweep="activity-leases"} 1.0' in text
        assert 'tenure_swept_total{sweep="activity"} 4.0' in text

    def test_old_answers_to_keys_are_forgotten(self, edge: Running) -> None:
        edge.live_cell()
        edge.operator.post("/v1/hosts/u/h/assignment", json={}, headers={"Idempotency-Key": "k"})
        sweeper = self.sweeper(edge)

        async def stored() -> bool:
            await sweeper.run_once()
            await sweeper.stop()
            actor = f"operator:id-of-{edge.operator.headers['Authorization'].split()[1]}"
            return await edge.service.reads.result(f"{actor} k") is not None

        assert edge.run(stored())
        edge.clock.set(NOW + RESULTS_KEPT_MS + 1)
        assert not edge.run(stored())


def test_a_signal_ends_the_process_with_streams_open(database: str, tmp_path: Path) -> None:
    """The whole program, by its command line, with 100 readers that would stay for ever."""
    environment = {**os.environ, "TENURE_DATABASE_URL": database}
    command = [sys.executable, "-c", "from app.cli.main import main; main()", "serve"]
    options = ["--port", "0", "--data-dir", str(tmp_path), "--no-sweeps"]
    with subprocess.Popen(
        [*command, *options],
        env={**environment, "TENURE_ALLOW_UNSAFE_DURABILITY": "true", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [process.stdout.readline() for _ in range(2)]
        assert said[0] == f"operator token: {tmp_path / 'token'} (new)\n"
        url = said[1].split()[1].removesuffix("/docs")
        token = (tmp_path / "token").read_text().strip()
        limits = httpx.Limits(max_connections=200)
        with httpx.Client(base_url=url, timeout=20, limits=limits) as client:
            client.headers["Authorization"] = f"Bearer {token}"
            streams = [
                client.send(client.build_request("GET", "/v1/log/stream"), stream=True)
                for _ in range(100)
            ]
            lines = [stream.iter_lines() for stream in streams]
            assert all(next(it) == ": following" for it in lines)
            process.send_signal(signal.SIGTERM)
            asked = time.monotonic()
            assert all("event: leaving" in list(it) for it in lines)
            process.wait(LEAVE_SECONDS_MAX)
            took = time.monotonic() - asked
        logged = process.stderr.read()
    assert took < 1.5
    assert token not in logged
    assert "Traceback" not in logged


def test_a_server_that_cannot_be_reached_is_said_in_a_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from app.cli.main import main; main()", "serve"]
    url = f"postgresql://nobody@127.0.0.1:1/{tmp_path.name}"
    ended = subprocess.run(
        [*command, "--port", "0", "--database-url", url, "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode != 0
    assert "cannot start: PostgreSQL is not reachable" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_setting_out_of_bounds_is_said_by_its_name(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from app.cli.main import main; main()", "serve"]
    ended = subprocess.run(
        [*command, "--port", "70000", "--data-dir", str(tmp_path)], capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr == "port: Input should be less than or equal to 65535\n"
