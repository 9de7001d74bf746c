"""PostgreSQL: a server to use, its schema, the log and the pool."""
