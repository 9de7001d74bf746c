"""The log, on PostgreSQL and in memory."""
