"""Loops that run beside the HTTP edge. Each is supervised and bounded."""
