"""Writers against each other for longer."""

import pytest

from tests.writer.test_rivals import check_rivals


@pytest.mark.parametrize("seed", range(5))
def test_rivals_for_long(database: str, seed: int) -> None:
    assert check_rivals(database, commands_each=10_000, seed=3 * seed) == 30_000
