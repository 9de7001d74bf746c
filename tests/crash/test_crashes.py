"""Once each here; many times in `make soak`."""

from pathlib import Path

from tests.crash.drill import PLACED_BEFORE_THE_BLOW, cut_all_connections, drill, kill_the_service


def test_killed_under_load(tmp_path: Path) -> None:
    assert drill(tmp_path, kill_the_service, times=1) >= PLACED_BEFORE_THE_BLOW


def test_all_database_connections_terminated_under_load(tmp_path: Path) -> None:
    assert drill(tmp_path, cut_all_connections, times=1) >= PLACED_BEFORE_THE_BLOW
