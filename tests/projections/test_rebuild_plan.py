"""What a rebuild goes on with, how it tells its progress, and what it never skips."""

import pytest

from adapters.mapper import UnreadableEvent
from adapters.postgres import kept
from adapters.postgres.rebuild import Rebuild
from adapters.postgres.store import connect
from projections.catalogue import PROJECTIONS
from projections.rebuild import Kept, Meter, code_of, resume_position
from tests.projections.logs import change

CELLS, RESERVATIONS = PROJECTIONS[:2]


def begun(position: int, *, version: int = 1, code: str | None = None) -> Kept:
    return Kept("cells", "rebuilt", version, code_of(CELLS) if code is None else code, position)


def test_a_rebuild_goes_on_only_with_the_same_fold_at_one_position() -> None:
    assert resume_position([CELLS], [begun(70)]) == 70
    assert resume_position([CELLS], []) is None
    assert resume_position([CELLS], [begun(70, version=2)]) is None
    assert resume_position([CELLS], [begun(70, code="other")]) is None
    assert resume_position([CELLS], [begun(70)._replace(role="live")]) is None
    both = [begun(70), Kept("cell_reservations", "rebuilt", 1, code_of(RESERVATIONS), 70)]
    assert resume_position([CELLS, RESERVATIONS], both) == 70
    assert resume_position([CELLS, RESERVATIONS], [begun(60), both[1]]) is None


def test_progress_tells_rate_and_remaining_time() -> None:
    ticks = iter([10.0, 10.0, 12.0])
    meter = Meter(1_000, lambda: next(ticks))
    assert meter.progress("folding", 1_000, 5_000).seconds_left is None
    progress = meter.progress("folding", 3_000, 5_000)
    assert (progress.events_per_second, progress.seconds_left) == (1_000.0, 2.0)


def test_an_event_that_cannot_be_read_ends_the_rebuild_before_it(recorded: str) -> None:
    change(recorded, "UPDATE log SET topic = 'host.vanished' WHERE position = 120")
    with pytest.raises(UnreadableEvent, match=r"host\.vanished"):
        Rebuild(recorded, PROJECTIONS, page_events=50).run()
    with connect(recorded) as connection:
        known = kept.read(connection)
    assert {(it.role, it.position) for it in known} == {("rebuilt", 100)}


def test_an_event_of_a_newer_version_is_never_skipped(recorded: str) -> None:
    newer = "convert_to(replace(convert_from(state, 'UTF8'), '{\"v\":1', '{\"v\":2'), 'UTF8')"
    change(recorded, f"UPDATE log SET state = {newer} WHERE position = 10")
    with pytest.raises(UnreadableEvent, match="only known up to 1"):
        Rebuild(recorded, PROJECTIONS).run()
