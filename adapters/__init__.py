"""What the domain and the projections need from outside: PostgreSQL, clock, ids."""
