"""Long repetitions: `make soak`."""
