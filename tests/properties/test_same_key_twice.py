"""A command that comes twice with one idempotency key happens once, if it may not succeed later."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.entry import Entry
from adapters.ports import Result
from app.outcome import KeyReused
from domain.relay.command import Command
from domain.relay.decide import RULES
from domain.relay.renewals import RenewControls
from tests.properties.commands import COMMANDS, WAITS_MS, History, aim, histories, hosts
from tests.properties.conftest import bounded
from tests.properties.world import Tables, World, said

waits = st.sampled_from(WAITS_MS)


def everything(world: World) -> tuple[list[Entry], Tables, dict[str, Result]]:
    return list(world.store.entries), world.tables(), dict(world.store.results)


def test_there_are_commands_of_every_type() -> None:
    assert set(COMMANDS) == {*RULES, RenewControls}


@pytest.mark.parametrize("command_type", COMMANDS, ids=lambda it: it.__name__)
def test_the_second_changes_nothing_and_is_answered_the_same(command_type: type[Command]) -> None:
    @bounded(20)
    @given(histories(16), st.data(), waits, waits, st.booleans())
    def twice(history: History, data: Any, before_ms: int, between_ms: int, cold: bool) -> None:
        world = history.world()
        world.clock.set(world.clock.now_ms() + before_ms)
        command = data.draw(COMMANDS[command_type](aim(world, data.draw(hosts))))
        first = world.run(command, "key", "print")
        assert not first.replayed
        if first.invites_again:
            assert not world.store.results
            assert not world.run(command, "key", "another print").replayed
            return
        known = everything(world)
        world.clock.set(world.clock.now_ms() + between_ms)
        if cold:
            world.scribe.known.forget()
        second = world.run(command, "key", "print")
        assert second.replayed
        assert said(second) == said(first)
        assert everything(world) == known
        reused = world.run(command, "key", "another print")
        assert isinstance(reused.refusal, KeyReused)
        assert not reused.replayed
        assert everything(world) == known

    twice()


@bounded(40)
@given(histories(12), st.data(), st.sampled_from([*COMMANDS]))
def test_a_repetition_in_the_same_turn_is_one_too(
    history: History, data: Any, command_type: type[Command]
) -> None:
    world, once = history.world(), history.world()
    command = data.draw(COMMANDS[command_type](aim(world, data.draw(hosts))))
    first, second = world.run_all([command, command], "key")
    only = once.run(command, "key")
    assert said(first) == said(second) == said(only)
    assert (first.replayed, second.replayed) == (False, not first.invites_again)
    assert everything(world) == everything(once)
