"""The rules: pure functions over events. No I/O, no clock, no randomness."""
