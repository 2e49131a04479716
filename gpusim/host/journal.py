"""Finished pieces of long work, kept so that neither a kill nor a damaged disk spoils them.

A journal is a file of lines, each a checksum and a piece as JSON. A piece is on disk before
`keep` returns. A line cut short by a kill is dropped; damaged lines are set aside in a
file of their own, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gpusim.errors import InputError
from gpusim.host.files import refusing

Record = dict[str, Any]
Fits = Callable[[str, Record], bool]  # whether a record is one that belongs to its key

DAMAGED_SUFFIX = ".damaged"
MAX_BYTES = 2**28  # a quarter of a million rows of a sweep


class Journal:
    """Finished pieces, found again by their keys; `remark` reports damage, if any was found."""

    def __init__(self, path: Path, file: BinaryIO, kept: dict[str, Record], remark: str) -> None:
        self.path = path
        self.kept = kept
        self.remark = remark
        self._file = file

    def keep(self, key: str, record: Record) -> None:
        """Write a finished piece."""
        with refusing(self.path):
            _append(self._file, line(key, record))
        self.kept[key] = record

    def discard(self) -> None:
        """Remove the journal: its content is stored elsewhere now."""
        if _is_at(self.path, self._file):
            self.path.unlink()


@contextlib.contextmanager
def opened(path: Path, fits: Fits | None = None) -> Iterator[Journal]:
    """Open a journal, a new one or one that an earlier run left; for one process at a time."""
    with contextlib.ExitStack() as stack:
        with refusing(path):
            file = stack.enter_context(_locked(path))
            found = _read(file, path, fits)
            if found.damaged:
                file = stack.enter_context(_without_damage(path, found))
            elif found.length < os.fstat(file.fileno()).st_size:
                file.truncate(found.length)
        try:
            yield Journal(path, file, found.kept, found.remark(path))
        finally:
            if not os.fstat(file.fileno()).st_size and _is_at(path, file):
                path.unlink()


@dataclass(frozen=True)
class _Found:
    """The content of a journal: pieces, their lines, and the damaged lines."""

    kept: dict[str, Record]
    good: list[bytes]
    damaged: list[bytes]
    length: int

    def remark(self, path: Path) -> str:
        """Say how many lines are damaged and where they are now; nothing where none is."""
        count = len(self.damaged)
        if not count:
            return ""
        lines = "one damaged line" if count == 1 else f"{count} damaged lines"
        return f"{path}: {lines} set aside in {_beside(path).name}; lost results are computed again"


def _read(file: BinaryIO, path: Path, fits: Fits | None) -> _Found:
    """Return the content of a journal, without a line half-written at its end."""
    file.seek(0)
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: is longer than {MAX_BYTES:,} bytes; remove it to start again")
    length = content.rfind(b"\n") + 1
    found = _Found({}, [], [], length)
    for kept in content[:length].split(b"\n")[:-1]:
        held = entry(kept)
        if held is None or (fits is not None and not fits(*held)):
            found.damaged.append(kept + b"\n")
        else:
            found.good.append(kept + b"\n")
            found.kept[held[0]] = held[1]
    return found


def line(key: str, record: Record) -> bytes:
    """Return a piece as a line with its checksum, at the end a newline."""
    content = json.dumps([key, record], separators=(",", ":")).encode()
    return _checksum(content) + b" " + content + b"\n"


def entry(kept: bytes) -> tuple[str, Record] | None:
    """Return the key and the record of a line; None if it is damaged."""
    checksum, _, content = kept.rstrip(b"\n").partition(b" ")
    if checksum != _checksum(content):
        return None
    try:
        key, record = json.loads(content)
    except (ValueError, TypeError, RecursionError):
        return None
    return (key, record) if isinstance(key, str) and isinstance(record, dict) else None


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).hexdigest().encode()


def _append(file: BinaryIO, line: bytes) -> None:
    """Write a line, all of it or, where the disk is full, nothing."""
    before = os.fstat(file.fileno()).st_size
    left = memoryview(line)
    try:
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(before)
        raise


def _without_damage(path: Path, found: _Found) -> BinaryIO:
    """Set the damaged lines aside and return a journal of the good ones, locked.

    A kill at any time leaves the journal and all its content.
    """
    with _beside(path).open("ab", buffering=0) as aside:
        _append(aside, b"".join(found.damaged))
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    file = _locked(part)
    _append(file, b"".join(found.good))
    part.replace(path)
    return file


def _beside(path: Path) -> Path:
    return path.with_name(path.name + DAMAGED_SUFFIX)


def _locked(path: Path) -> BinaryIO:
    """Open a file for this process alone.

    Whoever had it before may have removed or replaced it between our opening and our lock.
    """
    while True:
        file = path.open("a+b", buffering=0)
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path}: is a device, not a file")
            _lock(file, path)
            if _is_at(path, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether a path leads to this open file, or to another one or none."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _lock(file: BinaryIO, path: Path) -> None:
    """Lock a journal against a second sweep, until the process ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"another sweep is running on {path}") from None
