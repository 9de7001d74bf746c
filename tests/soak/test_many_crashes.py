"""The crash drills, ten blows each."""

from pathlib import Path

from tests.crash.drill import PLACED_BEFORE_THE_BLOW, cut_all_connections, drill, kill_the_service

BLOWS = 10


def test_killed_again_and_again(tmp_path: Path) -> None:
    assert drill(tmp_path, kill_the_service, BLOWS) >= BLOWS * PLACED_BEFORE_THE_BLOW


def test_connections_cut_again_and_again(tmp_path: Path) -> None:
    assert drill(tmp_path, cut_all_connections, BLOWS) >= BLOWS * PLACED_BEFORE_THE_BLOW
