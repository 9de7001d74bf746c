"""A process keeps to one processor, and two processes to two."""

import os
from pathlib import Path

import pytest

from app.processor import own_processor


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Two processors to choose from, whatever the machine has; what was set last."""
    now = {0, 1}

    def run_on(_task: int, chosen: set[int]) -> None:
        now.clear()
        now.update(chosen)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _task: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", run_on, raising=False)
    return now


def test_it_is_kept_and_given_back(tmp_path: Path, processors: set[int]) -> None:
    with own_processor(tmp_path) as taken:
        assert taken == 0
        assert processors == {0}
    assert processors == {0, 1}


def test_two_have_different_ones_and_a_third_none(tmp_path: Path, processors: set[int]) -> None:
    with (
        own_processor(tmp_path) as first,
        own_processor(tmp_path) as second,
        own_processor(tmp_path) as third,
    ):
        assert (first, second, third) == (0, 1, None)
        assert processors == {1}
    with own_processor(tmp_path) as again:
        assert again == 0


def test_with_one_processor_nothing_changes(
    tmp_path: Path, processors: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _task: {3}, raising=False)
    with own_processor(tmp_path) as taken:
        assert taken is None
        assert processors == {0, 1}
