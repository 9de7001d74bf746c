"""The crash drills, ten blows each."""

from pathlib import Path

from tests.crash.drill import cut_all_connections, drill, kill_the_service

BLOWS = 10


def test_killed_again_and_again(tmp_path: Path) -> None:
    drill(tmp_path, kill_the_service, BLOWS)
    assert BLOWS


def test_connections_cut_again_and_again(tmp_path: Path) -> None:
    drill(tmp_path, cut_all_connections, BLOWS)
    assert BLOWS
