"""Relay assignments: which host holds which place on which cell, and since when."""
