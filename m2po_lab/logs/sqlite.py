"""SQLite files opened for reading only, without locks or side files."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from m2po_lab.logs.errors import DamagedLogError, UnreadableLogError
from m2po_lab.logs.inflate import read_up_to
from m2po_lab.logs.source import Source

_MAGIC = b"SQLite format 3\x00"


def is_sqlite(source: Source) -> bool:
    """Whether the file is an SQLite database."""
    return source.head.startswith(_MAGIC)


@contextmanager
def opened(source: Source) -> Iterator[sqlite3.Connection]:
    """Open the database read-only and immutable; remote or compressed ones by way of a copy.

    Raises:
        UnreadableLogError: the database is broken.
    """
    copy: str | None = None
    try:
        if not source.is_local or source.is_compressed:
            copy = _copied(source)
        path = quote(str(Path(copy or source.path).absolute()))
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
            database.execute("PRAGMA query_only = ON")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.DatabaseError as error:
        raise DamagedLogError(
            source.address, f"broken database ({error})", "copy it again"
        ) from None
    finally:
        if copy:
            Path(copy).unlink(missing_ok=True)


def _copied(source: Source) -> str:
    """A temporary local copy."""
    handle, path = tempfile.mkstemp(prefix="m2po_lab_", suffix=".db")
    with source.open() as stream, os.fdopen(handle, "wb") as target:
        while piece := read_up_to(stream, 1 << 22):
            target.write(piece)
    return path


def table_with(source: Source, *columns: str) -> list[str]:
    """Tables that have all these columns; none if the file cannot be read."""
    try:
        with opened(source) as database:
            names = [
                n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
            ]
            return [n for n in names if set(columns) <= _columns(database, n)]
    except UnreadableLogError:
        return []


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """Column names of a table."""
    return {row[0] for row in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}
