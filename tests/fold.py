"""The check that every projection equals the fold of the log."""

from adapters.entry import EMPTY_HEAD, first_broken
from adapters.mapper import EventMapper
from adapters.memory import MemoryStore, write_rows
from adapters.ports import LogReader
from projections.catalogue import TABLES, Folder
from projections.table import Rows

ENTRIES_MAX = 1_000_000


def differing_table(reader: LogReader) -> tuple[str, object, object] | None:
    """The first table that is not what the log folds to: its name, its rows, the fold's rows."""
    rebuilt, mapper = MemoryStore(), EventMapper()
    folder, rows = Folder(), Rows()
    for entry in reader.read(0, ENTRIES_MAX):
        folder.fold(mapper.read(entry), entry.version, entry.position, rows)
    write_rows(rebuilt.tables, rows)
    for table in TABLES:
        live, folded = reader.dump(table.name), rebuilt.dump(table.name)
        if live != folded:
            return table.name, live, folded
    return None


def check_log_and_tables(reader: LogReader) -> None:
    """The chain holds and all tables equal the fold."""
    assert first_broken(EMPTY_HEAD, reader.read(0, ENTRIES_MAX)) is None
    assert differing_table(reader) is None
