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


def key(parts: Iterable[str]) -> str:
    """Return the name of an entry from the texts of its inputs."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def folder(kind: str) -> Path:
    """Return where entries of a kind are; RuntimeError for a user without a home."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gpusim" / kind


@dataclass(frozen=True)
class DiskCache:
    """Entries of one kind, in a folder of their own of limited size in bytes.

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
        """Keep an entry, and drop the oldest where there is too much."""
        with contextlib.suppress(OSError, RuntimeError):
            mode = 0o700 if self.is_private else 0o777
            self.folder.mkdir(mode, parents=True, exist_ok=True)
            if self.is_private and not _is_mine(self.folder):
                return
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                try:
                    file.write(hashlib.sha256(body).hexdigest().encode() + body)
                    file.flush()
                    Path(file.name).replace(self.folder / name)
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
            self._shrink()

    def _shrink(self) -> None:
        entries = sorted(
            ((file.stat().st_mtime, file.stat().st_size, file) for file in self.folder.iterdir()),
            reverse=True,
        )
        total = 0
        for _, size, file in entries:
            total += size
            if total > self.most_bytes:
                file.unlink(missing_ok=True)


def _is_mine(folder: Path) -> bool:
    """Return whether a folder is this user's, and nobody else can write to it."""
    if not hasattr(os, "getuid"):
        return True  # Windows: a user's own folders are
    stat = folder.stat()
    return stat.st_uid == os.getuid() and not stat.st_mode & 0o022
