"""What was compiled before, kept on disk: by a hash of all that it was made from.

Each entry begins with the checksum of the rest; what does not match is as if it were not there.
Where nothing can be written, all goes on without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 30
_DIGEST = 64


def folder() -> Path:
    """Return where entries are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gpusim" / "machine-code"


def key(parts: Iterable[str]) -> str:
    """Return the name of the entry for what was made from these."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(name: str) -> dict[str, Any] | None:
    """Return an entry, None where there is none or it is damaged."""
    try:
        held = (folder() / name).read_bytes()
        digest, body = held[:_DIGEST], held[_DIGEST:]
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        entry = json.loads(zlib.decompress(body))
        os.utime(folder() / name)
    except (OSError, ValueError, zlib.error, RuntimeError):
        return None
    return entry if isinstance(entry, dict) else None


def store(name: str, entry: dict[str, Any]) -> None:
    """Keep an entry, and drop the oldest where there is too much."""
    body = zlib.compress(json.dumps(entry).encode(), 1)
    with contextlib.suppress(OSError, RuntimeError):
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(hashlib.sha256(body).hexdigest().encode() + body)
        Path(file.name).replace(folder() / name)
        _shrink()


def _shrink() -> None:
    entries = sorted(
        ((file.stat().st_mtime, file.stat().st_size, file) for file in folder().iterdir()),
        reverse=True,
    )
    total = 0
    for _, size, file in entries:
        total += size
        if total > MOST_BYTES:
            file.unlink(missing_ok=True)
