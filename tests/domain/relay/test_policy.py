"""What an operator may set about the rules."""

from typing import Any

import pytest

from domain.refusals import InvalidRegionalRehomeCohort
from domain.relay.policy import Policy


@pytest.mark.parametrize("percent", [0, 1, 100])
def test_a_cohort_is_a_whole_percentage(percent: int) -> None:
    assert Policy(regional_rehome_cohort_percent=percent).regional_rehome_cohort_percent == percent


@pytest.mark.parametrize("percent", [-1, 101, 0.5, 50.0, float("nan"), None, "10"])
def test_nothing_else_is(percent: Any) -> None:
    with pytest.raises(InvalidRegionalRehomeCohort) as refused:
        Policy(regional_rehome_cohort_percent=percent)
    assert refused.value.code == "invalid_regional_rehome_cohort"


def test_live_cells_and_45_seconds_are_the_default() -> None:
    assert Policy() == Policy(True, 45_000, 0)
