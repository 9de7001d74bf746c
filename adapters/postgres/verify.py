"""Verifying live tables: both they and the log are seen at one moment, beside the writers."""

import time
from collections.abc import Callable, Sequence

from adapters.mapper import EventMapper
from adapters.postgres import compare, shadows
from adapters.postgres.folding import OPTIONS, PAGE_EVENTS, Page, Pass, head, write_rows
from adapters.postgres.store import connect
from projections.rebuild import Meter, Tell, tables_of, tell_nobody
from projections.table import Projection
from projections.verify import Verified

PREFIX = "folded_"


def verify(
    dsn: str,
    projections: Sequence[Projection],
    *,
    tell: Tell = tell_nobody,
    seconds: Callable[[], float] = time.monotonic,
    page_events: int = PAGE_EVENTS,
) -> Verified:
    """Fold the whole log into temporary tables and compare. Raises `UnreadableEvent`."""
    tables = tables_of(projections)
    names = tuple(it.name for it in projections)
    over = Pass(dsn, projections, EventMapper(), page_events)
    try:
        with connect(dsn, OPTIONS) as connection, connection.transaction(force_rollback=True):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            target = head(connection)
            shadows.create(connection, tables, PREFIX, kind="TEMP")

            def write(page: Page) -> None:
                write_rows(connection, page.rows, PREFIX)

            meter = Meter(0, seconds)
            for position in over.run(0, target, write):
                tell(meter.progress("folding", position, target))
            tell(meter.progress("comparing", target, target))
            found = compare.differences(connection, tables, PREFIX)
            rows = compare.count(connection, tables, PREFIX)
            tell(meter.progress("done", target, target))
            return Verified(target, names, rows, tuple(found))
    finally:
        over.close()
