"""The relay over HTTP."""

from app.http.declaration import Endpoint
from app.http.relay import cells, hosts, sweeps

OPERATIONS: tuple[Endpoint, ...] = (*hosts.OPERATIONS, *cells.OPERATIONS, *sweeps.OPERATIONS)
