"""The relay's read models."""
