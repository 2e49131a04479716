"""A cache on disk of compiler output, with the state of all files that it depends on.

Two steps, because only the compiler knows its files: under the name of a request lie the lists of
paths that it looked up, found or not; under that name with the paths' present states lies an entry.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from gpusim.host.disk_cache import DiskCache, key
from gpusim.sass.lookups import state, within

Asked = tuple[str, bool]  # a path that was looked up, and whether for its content
Lookup = tuple[str, bool, str]  # with its state by then
MOST_LISTS = 8  # of one request: headers that come and go make other lists

_ENTRIES = DiskCache("machine-code", most_bytes=1 << 30)


def load(name: str, stamped: Sequence[str]) -> dict[str, Any] | None:
    """Return the entry of a request for the files as they are; None where there is none.

    Of files in the folders `stamped` size and time are their state.
    """
    for asked in _lists(name):
        entry = _held(_with_states(name, asked, states(asked, stamped)))
        if entry is not None:
            return entry
    return None


def store(name: str, lookups: Sequence[Lookup], entry: dict[str, Any]) -> None:
    """Keep an entry with the files that it was made from."""
    asked = [(path, is_read) for path, is_read, _ in lookups]
    _keep(_with_states(name, asked, [state for *_, state in lookups]), entry)
    others = [one for one in _lists(name) if one != asked]
    _keep(name, {"lists": [asked, *others[: MOST_LISTS - 1]]})


def states(asked: Sequence[Asked], stamped: Sequence[str]) -> list[str]:
    """Return the present states of paths."""
    folders = within(stamped)
    return [state(path, is_read, folders) for path, is_read in asked]


def _lists(name: str) -> list[list[Asked]]:
    held = (_held(name) or {}).get("lists", [])
    return [[(path, is_read) for path, is_read in asked] for asked in held]


def _with_states(name: str, asked: Sequence[Asked], held: Sequence[str]) -> str:
    parts = [f"{path!a} {state}" for (path, _), state in zip(asked, held, strict=True)]
    return key([name, *parts])


def _held(name: str) -> dict[str, Any] | None:
    body = _ENTRIES.load(name)
    try:
        entry = None if body is None else json.loads(zlib.decompress(body))
    except (ValueError, zlib.error):
        return None
    return entry if isinstance(entry, dict) else None


def _keep(name: str, entry: dict[str, Any]) -> None:
    _ENTRIES.store(name, zlib.compress(json.dumps(entry).encode(), 1))
