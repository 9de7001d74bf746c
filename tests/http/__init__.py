"""The HTTP edge, over real sockets on a real PostgreSQL."""
