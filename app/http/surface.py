"""Everything that can be asked over HTTP: a context is a line."""

from app.http import relay, service
from app.http.batch import batch
from app.http.declaration import Endpoint
from app.http.service.clock import SET_CLOCK
from app.settings import Settings

OPERATIONS: tuple[Endpoint, ...] = (*relay.OPERATIONS, *service.OPERATIONS)


def endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """What a service with these settings answers."""
    virtual = (SET_CLOCK,) if settings.clock == "virtual" else ()
    return (*OPERATIONS, batch(OPERATIONS), *virtual)
