"""The heap of malloc in kernels, one for each launch."""

from __future__ import annotations

_UNIT = 16


class Heap:
    """Allocates from address `begin` on; freed memory is reused for requests of the same size."""

    def __init__(self, begin: int, size: int) -> None:
        self._next, self._end = begin, begin + size
        self._given: dict[int, int] = {}
        self._free: dict[int, list[int]] = {}

    def given(self, size: int) -> int:
        """Return the address of `size` bytes; 0 if the heap is exhausted."""
        size = -(-size // _UNIT) * _UNIT
        free = self._free.get(size)
        if free:
            place = free.pop()
        elif 0 < size <= self._end - self._next:
            place = self._next
            self._next += size
        else:
            return 0
        self._given[place] = size
        return place

    def take_back(self, place: int) -> bool:
        """Take memory back; return whether it was given."""
        size = self._given.pop(place, None)
        if size is not None:
            self._free.setdefault(size, []).append(place)
        return size is not None
