"""Replaying recorded runs of the original against our rules."""
