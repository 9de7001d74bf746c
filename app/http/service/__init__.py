"""The service itself over HTTP: its health, its log, what its problems mean."""

from app.http.declaration import Endpoint
from app.http.service import health, log

OPERATIONS: tuple[Endpoint, ...] = (*health.OPERATIONS, *log.OPERATIONS)
