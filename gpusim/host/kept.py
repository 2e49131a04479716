"""Caches of bounded size: the least recently used entry is dropped first.

`once` caches functions of programs, `functools.lru_cache` others, with a size each; programs and
their contents are keys by identity. `Recent` is a cache that is filled by hand.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TypeVar

Key = TypeVar("Key")
Held = TypeVar("Held")

MOST_KEPT = 16  # programs with results that are kept
once = lru_cache(maxsize=MOST_KEPT)  # an analysis runs once for each recent program


class Recent(OrderedDict[Key, Held]):
    """A mapping of at most `most` entries: a further one replaces the least recently used.

    Setting an entry and `used` count as uses.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Key, held: Held) -> None:
        super().__setitem__(key, held)
        self.move_to_end(key)
        if len(self) > self._most:
            del self[next(iter(self))]

    def used(self, key: Key) -> Held | None:
        """Return an entry, None where there is none."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)
