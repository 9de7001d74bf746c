"""Read models: pure folds from events to rows, and their rebuild and verification."""
