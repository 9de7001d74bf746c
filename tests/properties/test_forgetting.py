"""What the log writer remembers only makes it faster, never decide otherwise."""

from hypothesis import given

from domain.relay.expiry import ReleaseExpiredLeases
from tests.properties.commands import History, histories
from tests.properties.conftest import bounded
from tests.properties.world import World, said


@bounded(40)
@given(histories())
def test_the_same_history_gives_the_same_log_however_much_is_remembered(history: History) -> None:
    """Remembering all, nothing, one host at a time, and deciding ahead of the lock."""
    policy = history.policy
    warm, cold, crowded, ahead = World(policy), World(policy), World(policy, 1), World(policy)
    for step in history.steps:
        told = said(warm.take(step))
        cold.scribe.known.forget()
        assert said(cold.take(step)) == told
        assert said(crowded.take(step)) == told
        assert said(ahead.take_ahead(step)) == told
    for world in (cold, crowded, ahead):
        assert [it.state for it in world.store.entries] == [it.state for it in warm.store.entries]
        assert world.tables() == warm.tables()


@bounded(40)
@given(histories())
def test_tables_are_what_the_log_folds_to_and_leases_have_their_deadlines(
    history: History,
) -> None:
    world = World(history.policy)
    for step in history.steps:
        before, outcome = world.store.head().position, world.take(step)
        world.check_fold()
        world.check_deadlines()
        if outcome.refusal is not None and not isinstance(step.command, ReleaseExpiredLeases):
            assert world.store.head().position == before
