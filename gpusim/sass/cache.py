"""What was compiled before, kept on disk."""

from __future__ import annotations

import json
import zlib
from typing import Any

from gpusim.disk_cache import DiskCache

_ENTRIES = DiskCache("machine-code", most_bytes=1 << 30)


def load(name: str) -> dict[str, Any] | None:
    """Return an entry, None where there is none or it is damaged."""
    body = _ENTRIES.load(name)
    try:
        entry = None if body is None else json.loads(zlib.decompress(body))
    except (ValueError, zlib.error):
        return None
    return entry if isinstance(entry, dict) else None


def store(name: str, entry: dict[str, Any]) -> None:
    """Keep an entry."""
    _ENTRIES.store(name, zlib.compress(json.dumps(entry).encode(), 1))
