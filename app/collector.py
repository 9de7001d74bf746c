"""Python's garbage collector, set for a process that keeps much and makes few cycles."""

import gc

THRESHOLDS = (2_000, 10, 1_000)
"""The writer keeps up to 100,000 hosts in memory. Going through them for cycles that are not
there stops everything for 0.2 s and halves the rate, so it is done rarely. Young objects are few,
and looking through many at once would show in the 99th percentile."""


def collect_rarely() -> None:
    """Leave what the start left behind alone for good, and look for cycles rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
