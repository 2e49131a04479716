"""What is worked out once: a bounded number of results, those used last.

Functions keep theirs by `once`, for programs, or by `functools.lru_cache` with a number of their
own; programs and their contents are keys by identity. `Recent` keeps what no function returns.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TypeVar

Key = TypeVar("Key")
Held = TypeVar("Held")

MOST_KEPT = 16  # programs with results that are kept
once = lru_cache(maxsize=MOST_KEPT)  # an analysis looks only once at each of the programs used last


class Recent(OrderedDict[Key, Held]):
    """A mapping of at most `most` entries: a further one takes the place of the one unused longest.

    Entries are used by being set, and by `used`.
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
