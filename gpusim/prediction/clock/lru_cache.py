"""A cache of lines with LRU replacement."""

from __future__ import annotations

from collections.abc import Iterable


class LruCache:
    """An LRU cache of `size` lines; lines of `before` are already used, in order."""

    def __init__(self, size: int, before: Iterable[int]) -> None:
        self._size = size
        self._held: dict[int, None] = {}
        for line in before:
            self.use(line)

    def use(self, line: int) -> bool:
        """Use a line; return whether it was a hit."""
        hit = line in self._held
        self._held.pop(line, None)
        self._held[line] = None
        if len(self._held) > self._size:
            del self._held[next(iter(self._held))]
        return hit
