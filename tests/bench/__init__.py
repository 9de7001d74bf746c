"""How fast it is, measured beside baselines in the same run: `make bench`."""
