"""How many examples the properties are tried with.

By default the same few each time; with HYPOTHESIS_PROFILE=soak twenty times as many, new each time.
"""

import os

from hypothesis import HealthCheck, settings

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
SOAK_FACTOR = 20


def bounded(examples: int, steps: int = 30) -> settings:
    """Settings for a property: so many examples, and so many steps of a state machine in each."""
    return settings(
        max_examples=examples * (SOAK_FACTOR if SOAK else 1),
        stateful_step_count=steps,
        derandomize=not SOAK,
        database=None,
        deadline=None,
        print_blob=SOAK,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
