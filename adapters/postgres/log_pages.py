"""Pages of the log: what a look at a bounded number of entries found, and how far it looked.

A page takes no longer the rarer its topic is, and a stream is found by its index wherever in the
log the page begins: `tests/regressions/test_rare_topics.py` counts the rows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from adapters.entry import Entry
from adapters.postgres.statements import ENTRY_COLUMNS

LOOKED_AT_ENTRIES_MAX = 10_000
"""So many entries are looked at for a page of one topic, whether or not it got full."""


class Page(NamedTuple):
    """Entries in order. All that the log has of their kind up to `looked_to` is in it."""

    entries: list[Entry]
    looked_to: int
    """What follows is in the pages after this position."""
    head: int
    """How far the log went."""


def look(
    after: int, limit: int, stream: str | None, topic: str | None
) -> tuple[str, dict[str, Any]]:
    """The statement that looks for a page, and its parameters."""
    wanted = {
        "after": after,
        "limit": limit,
        "stream": stream,
        "topic": topic,
        "looked_at": limit if topic is None else LOOKED_AT_ENTRIES_MAX,
    }
    query = _OF_LOG if stream is None else _OF_STREAM
    return query.format(topic="" if topic is None else "AND topic = %(topic)s"), wanted


def page(after: int, limit: int, rows: Sequence[Sequence[Any]]) -> Page:
    """What the statement found."""
    head, looked_to, first = rows[0][:3]
    entries = [] if first is None else [Entry(*row[2:]) for row in rows]
    if len(entries) == limit:
        looked_to = entries[-1].position
    return Page(entries, max(after, looked_to), head)


_HEAD = "(SELECT coalesce(max(position), 0) AS head FROM log) AS h"
_OF_LOG = f"""
SELECT h.head, least(h.head, %(after)s::bigint + %(looked_at)s), e.*
FROM {_HEAD} LEFT JOIN (
    SELECT {ENTRY_COLUMNS} FROM log
    WHERE position > %(after)s AND position <= %(after)s::bigint + %(looked_at)s {{topic}}
    ORDER BY position LIMIT %(limit)s
) AS e ON true ORDER BY e.position
"""
_OF_STREAM = f"""
WITH RECURSIVE search(low, high) AS (
    SELECT 0::bigint, coalesce(max(version), 0) + 1 FROM log WHERE stream = %(stream)s
    UNION ALL
    SELECT CASE WHEN found.position > %(after)s THEN low ELSE found.version + 1 END,
           CASE WHEN found.position > %(after)s THEN (low + high) / 2 ELSE high END
    FROM search CROSS JOIN LATERAL (
        SELECT version, position FROM log
        WHERE stream = %(stream)s AND version >= (low + high) / 2 ORDER BY version LIMIT 1
    ) AS found WHERE low < high
), first AS MATERIALIZED (
    SELECT min(version) AS version FROM log
    WHERE stream = %(stream)s AND version >= (SELECT min(high) FROM search)
)
SELECT h.head, coalesce(following.position - 1, h.head), e.*
FROM {_HEAD} CROSS JOIN first LEFT JOIN LATERAL (
    SELECT position FROM log
    WHERE stream = %(stream)s AND log.version >= first.version + %(looked_at)s
    ORDER BY log.version LIMIT 1
) AS following ON true LEFT JOIN LATERAL (
    SELECT {ENTRY_COLUMNS} FROM log
    WHERE stream = %(stream)s AND log.version >= first.version
      AND log.version < first.version + %(looked_at)s {{topic}}
    ORDER BY log.version LIMIT %(limit)s
) AS e ON true ORDER BY e.position
"""
"""Versions of a stream are in the order of positions, so its first version after a position is
found by halving; the index has no positions."""
