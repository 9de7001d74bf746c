"""Once each here; many times in `make soak`."""

from pathlib import Path

from tests.crash.drill import cut_all_connections, drill, kill_the_service


def test_killed_under_load(tmp_path: Path) -> None:
    drill(tmp_path, kill_the_service, times=1)


def test_all_database_connections_terminated_under_load(tmp_path: Path) -> None:
    drill(tmp_path, cut_all_connections, times=1)
