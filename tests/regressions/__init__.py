"""Fixed bugs, each with what shows it."""
