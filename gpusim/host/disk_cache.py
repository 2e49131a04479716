"""A cache on disk of expensive results, by a hash of all their inputs.

Each entry begins with a checksum of its name and content; a damaged entry counts as absent. A cache
that cannot be written, or that other users can write to, is not used: entries may be machine code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpusim.errors import GpusimWarning
from gpusim.host import temporary

_DIGEST = 64
# The size is checked, at random, about once for each 1/_PART of the limit that is stored: a check
# of 15,000 entries takes 0.2 s.
_PART = 32


def key(parts: Iterable[str]) -> str:
    """Return the name of an entry from the texts of its inputs."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def folder(kind: str) -> Path:
    """Return the place of a cache; RuntimeError for a user without a home."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gpusim" / kind


def private_folder(kind: str, *, make: bool = False) -> Path:
    """Return the folder of a cache to which no other user can write, on demand a new one.

    OSError where it is missing, cannot be made or is open to others; RuntimeError for a user
    without a home.
    """
    place = folder(kind)
    if make:
        place.parent.parent.mkdir(parents=True, exist_ok=True)
        for one in (place.parent, place):
            one.mkdir(0o700, exist_ok=True)
    why = _exposure(place, place.parent, place.parent.parent)
    if why:
        _say(f"the cache {place} is not used: {why}")
        raise PermissionError(why)
    return place


def program_place(kind: str, name: str) -> Path:
    """Return the place of a compiled program in a cache; it is there or can be written.

    Without a cache that can be written, it is in a temporary folder until the process ends.
    """
    with contextlib.suppress(OSError, RuntimeError):
        place = private_folder(kind, make=True) / name
        if place.exists() and _exposure(place):
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        if place.exists() or os.access(place.parent, os.W_OK):
            return place
    return _temporary_folder(kind) / name


@functools.cache
def _temporary_folder(kind: str) -> Path:
    _say(f"the {kind} cache cannot be used; its programs are compiled again in each run")
    return temporary.lasting_folder()


def _exposure(place: Path, *above: Path) -> str:
    """Return how others can write to a place or replace it, "" where they cannot.

    Of the folders `above` it, sticky ones such as /tmp are safe.
    """
    if not hasattr(os, "geteuid"):
        return ""  # Windows: a user's own folders are
    for one in (place, *above):
        held = one.stat()
        if not _is_trusted(held):
            return f"another user owns {one}"
        if held.st_mode & 0o022 and not (one in above and held.st_mode & stat.S_ISVTX):
            return f"other users can write to {one}"
    return ""


def _is_trusted(held: os.stat_result) -> bool:
    """Return whether a file is this user's or the administrator's."""
    return not hasattr(os, "geteuid") or held.st_uid in (0, os.geteuid())


@functools.cache
def _say(message: str) -> None:
    warnings.warn(message, GpusimWarning, stacklevel=2)


@dataclass(frozen=True)
class DiskCache:
    """Entries of one kind, in a folder of their own of limited size in bytes, more or less."""

    kind: str
    most_bytes: int

    @property
    def folder(self) -> Path:
        """The place of the entries; RuntimeError for a user without a home."""
        return folder(self.kind)

    def load(self, name: str) -> bytes | None:
        """Return an entry, None where there is none or it is damaged."""
        try:
            path = private_folder(self.kind) / name
            with path.open("rb") as file:
                held = file.read() if _is_trusted(os.fstat(file.fileno())) else b""
            digest, body = held[:_DIGEST], held[_DIGEST:]
            if _checksum(name, body) != digest:
                return None
            os.utime(path)
        except (OSError, RuntimeError):
            return None
        return body

    def store(self, name: str, body: bytes) -> None:
        """Keep an entry; now and then, drop the oldest beyond the size limit."""
        digest = _checksum(name, body)
        with contextlib.suppress(OSError, RuntimeError):
            place = private_folder(self.kind, make=True)
            with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
                try:
                    file.write(digest + body)
                    file.flush()
                    Path(file.name).replace(place / name)
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
            if int(digest[:8], 16) * self.most_bytes < (len(body) * _PART) << 32:
                self._shrink()

    def _shrink(self) -> None:
        with os.scandir(self.folder) as found:
            states = [(entry.stat(), entry.path) for entry in found]
        entries = sorted(((one.st_mtime, one.st_size, path) for one, path in states), reverse=True)
        total = 0
        for _, size, path in entries:
            total += size
            if total > self.most_bytes:
                Path(path).unlink(missing_ok=True)


def _checksum(name: str, body: bytes) -> bytes:
    digest = hashlib.sha256(name.encode() + b"\0")
    digest.update(body)
    return digest.hexdigest().encode()
