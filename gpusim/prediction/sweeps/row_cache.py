"""Rows of earlier sweeps, kept on disk by the digest of all their inputs.

The file may be deleted at any time. A row whose checksum is wrong counts as absent, a file that is
no database is replaced, and where nothing can be written all goes on without.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpusim.host.disk_cache import private_folder
from gpusim.host.journal import entry, line
from gpusim.prediction.sweeps.tables import Row

FOLDER, FILE = "rows", "rows.sqlite3"
MOST_ROWS = 200_000  # of some 1,200 bytes each
AT_ONCE = 500  # keys of a query
PATIENCE_S = 2.0  # for another process that writes

Fits = Callable[[str, Row], bool]  # whether a row is valid for its key


class RowCache:
    """Rows by their key, for one process at a time or several."""

    def __init__(self, connection: sqlite3.Connection | None) -> None:
        self._connection = connection

    def load(self, keys: Sequence[str], fits: Fits) -> dict[str, Row]:
        """Return the undamaged rows of these keys that fit."""
        found = {}
        with contextlib.suppress(sqlite3.Error):
            for kept in self._lines(keys):
                held = entry(kept) if isinstance(kept, bytes) else None
                if held is not None and fits(*held):
                    found[held[0]] = held[1]
        return {key: found[key] for key in keys if key in found}

    def store(self, key: str, row: Row) -> None:
        """Keep a row."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute(
                    "INSERT OR REPLACE INTO rows (key, line) VALUES (?, ?)", (key, line(key, row))
                )

    def _lines(self, keys: Sequence[str]) -> Iterator[bytes]:
        if self._connection is None:
            return
        for first in range(0, len(keys), AT_ONCE):
            some = keys[first : first + AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT line FROM rows WHERE key IN ({marks})"
            for (kept,) in self._connection.execute(query, some):
                yield kept


@contextlib.contextmanager
def opened(most_rows: int = MOST_ROWS) -> Iterator[RowCache]:
    """Open the user's cache; of too many rows the oldest are dropped at the end."""
    connection = None
    with contextlib.suppress(OSError, RuntimeError):
        connection = _connected(private_folder(FOLDER, make=True) / FILE)
    try:
        yield RowCache(connection)
    finally:
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.execute(
                    "DELETE FROM rows WHERE rowid <= (SELECT max(rowid) FROM rows) - ?",
                    (most_rows,),
                )
            connection.close()


def _connected(path: Path) -> sqlite3.Connection | None:
    """Return a connection to a file of rows, a new one in place of any other file."""
    for _ in range(2):
        connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, line BLOB)")
            connection.execute("SELECT key, line FROM rows LIMIT 1").fetchall()
        except sqlite3.OperationalError:  # locked, read-only or full
            connection.close()
            return None
        except sqlite3.DatabaseError:
            connection.close()
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        else:
            return connection
    return None
