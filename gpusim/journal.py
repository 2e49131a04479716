"""Files that a kill cannot spoil: a journal of finished pieces, and outputs written whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gpusim.errors import InputError

Record = dict[str, Any]


class Journal:
    """Finished pieces, a line of JSON each, on disk before `keep` returns.

    A piece is found again by its key. A line that a kill has cut short is dropped.
    """

    def __init__(self, path: Path, file: BinaryIO, kept: dict[str, Record]) -> None:
        self.path = path
        self.kept = kept
        self._file = file

    def keep(self, key: str, record: Record) -> None:
        """Write a finished piece."""
        line = json.dumps({"key": key, "record": record}, separators=(",", ":"))
        with refusing(self.path):
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self.kept[key] = record

    def discard(self) -> None:
        """Remove the journal: what it holds is elsewhere now."""
        self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Journal]:
    """Open a journal, a new one or one that an earlier run left; for one process at a time."""
    with refusing(path):
        file = path.open("a+b")
    with file:
        with refusing(path):
            _lock(file, path)
            kept = _kept(file)
        try:
            yield Journal(path, file, kept)
        finally:
            if not os.fstat(file.fileno()).st_size:
                path.unlink(missing_ok=True)


def write_whole(path: Path, content: str) -> None:
    """Write a file so that, whenever a kill comes, its old or its new content is there."""
    beside = path.with_name(f".{path.name}.part")
    with refusing(path):
        with beside.open("w", encoding="utf-8", newline="") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


@contextlib.contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn what the system says of a file into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


def _kept(file: BinaryIO) -> dict[str, Record]:
    """Return what a journal holds, and cut off what a kill has left half-written."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)
    return dict(_records(content[:whole]))


def _records(content: bytes) -> Iterator[tuple[str, Record]]:
    for line in content.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            yield entry["key"], dict(entry["record"])


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep a second sweep from the same journal; the system lets go when the process ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"another sweep is at work on {path}") from None
