"""A cache on disk of expensive results, by a hash of all their inputs.

Each entry begins with the checksum of the rest; a damaged entry counts as absent.
If nothing can be written, all goes on without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_DIGEST = 64
# The folder is looked through about as often as so small a part of its size was stored, by chance:
# a look at 15,000 entries takes 0.2 s.
_PART = 32


def key(parts: Iterable[str]) -> str:
    """Return the name of an entry from the texts of its inputs."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def folder(kind: str) -> Path:
    """Return where entries of a kind are; RuntimeError for a user without a home."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gpusim" / kind


@dataclass(frozen=True)
class DiskCache:
    """Entries of one kind, in a folder of their own of limited size in bytes, more or less.

    Entries that are run are kept and read in an `is_private` folder alone: nobody else can write
    there.
    """

    kind: str
    most_bytes: int
    is_private: bool = False

    @property
    def folder(self) -> Path:
        """Where the entries are; RuntimeError for a user without a home."""
        return folder(self.kind)

    def load(self, name: str) -> bytes | None:
        """Return an entry, None where there is none or it is damaged."""
        try:
            if self.is_private and not _is_mine(self.folder):
                return None
            held = (self.folder / name).read_bytes()
            digest, body = held[:_DIGEST], held[_DIGEST:]
            if hashlib.sha256(body).hexdigest().encode() != digest:
                return None
            os.utime(self.folder / name)
        except (OSError, RuntimeError):
            return None
        return body

    def store(self, name: str, body: bytes) -> None:
        """Keep an entry; drop the oldest at times, where there is too much."""
        digest = hashlib.sha256(body).hexdigest()
        with contextlib.suppress(OSError, RuntimeError):
            mode = 0o700 if self.is_private else 0o777
            self.folder.mkdir(mode, parents=True, exist_ok=True)
            if self.is_private and not _is_mine(self.folder):
                return
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                try:
                    file.write(digest.encode() + body)
                    file.flush()
                    Path(file.name).replace(self.folder / name)
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


def _is_mine(folder: Path) -> bool:
    """Return whether a folder is this user's, and nobody else can write to it."""
    if not hasattr(os, "getuid"):
        return True  # Windows: a user's own folders are
    stat = folder.stat()
    return stat.st_uid == os.getuid() and not stat.st_mode & 0o022
