"""What an auditor can check: the state at a position, from the log alone."""
