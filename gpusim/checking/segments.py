"""The accesses of a large memory's elements, as one number where a segment's threads are regular.

Threads of a warp mostly access neighbours. A segment of 32 elements then keeps the first element's
number, and the pattern of the threads of the others; any other segment keeps one number an element.
"""

from __future__ import annotations

import numpy as np

from gpusim.checking.element_access import THREAD_SHIFT
from gpusim.host import lazy_memory
from gpusim.typing import Array

SHIFT = 5
SEGMENT = 1 << SHIFT  # elements
_PLACES = np.arange(SEGMENT)
# The threads of a segment's elements, counted from the first one's: one thread for all, or the
# next thread with every element, or every 2, 4 or 8 elements.
_PATTERNS = np.stack([_PLACES * 0, *(_PLACES >> shift for shift in range(4))]) << THREAD_SHIFT
EACH = len(_PATTERNS)  # the code of a segment with a number for each element
_BY_CODE = np.concatenate([_PATTERNS, _PATTERNS[:1]])


def zeros(elements: int) -> Array:
    """Return zeros of 64 bits that take memory where they are touched."""
    return lazy_memory.zeros(elements, np.int64)


class Segments:
    """Packed accesses by element: int64, (elements,), read and written by arrays of places."""

    def __init__(self, elements: int) -> None:
        segments = -(-elements // SEGMENT)
        self._elements = elements
        self._first = zeros(segments)
        self._codes = np.zeros(segments, dtype=np.uint8)
        self._each = zeros(segments * SEGMENT)

    def __len__(self) -> int:
        return self._elements

    def __getitem__(self, elements: Array) -> Array:
        """Return the number of each element."""
        found: Array
        if _is_run(elements):
            start, end = int(elements[0]), int(elements[-1]) + 1
            segments = slice(start >> SHIFT, ((end - 1) >> SHIFT) + 1)
            codes = self._codes[segments]
            rows = self._first[segments, None] + _BY_CODE[codes]
            apart = np.flatnonzero(codes == EACH)
            if len(apart):
                rows[apart] = self._each.reshape(-1, SEGMENT)[segments][apart]
            before = segments.start << SHIFT
            found = rows.reshape(-1)[start - before : end - before]
            return found
        segment = elements >> SHIFT
        code = self._codes[segment]
        places = (code.astype(np.int64) << SHIFT) | (elements & (SEGMENT - 1))
        found = self._first[segment] + _BY_CODE.reshape(-1)[places]
        apart = np.flatnonzero(code == EACH)
        if len(apart):
            found[apart] = self._each[elements[apart]]
        return found

    def __setitem__(self, elements: Array, numbers: Array | int) -> None:
        """Set the number of each element; an element named twice gets either."""
        numbers = np.broadcast_to(np.asarray(numbers), elements.shape)
        starts = _whole_segments(elements)
        left: Array | slice = slice(None)
        if len(starts):
            rows = starts[:, None] + _PLACES
            codes = _codes_of(numbers[rows])
            regular = codes != EACH
            segments = elements[starts[regular]] >> SHIFT
            self._first[segments], self._codes[segments] = numbers[starts[regular]], codes[regular]
            others = np.ones(len(elements), dtype=bool)
            others[rows[regular]] = False
            left = np.flatnonzero(others)
        elements, numbers = elements[left], numbers[left]
        if len(elements):
            self._spread(elements >> SHIFT)
            self._each[elements] = numbers

    def _spread(self, segments: Array) -> None:
        """Give the elements of segments a number each."""
        segments = segments[self._codes[segments] != EACH]
        if not len(segments):
            return
        segments = np.unique(segments)
        each = self._first[segments][:, None] + _BY_CODE[self._codes[segments]]
        self._each.reshape(-1, SEGMENT)[segments] = each
        self._codes[segments] = EACH


def _is_run(elements: Array) -> bool:
    """Return whether each element is the next of the one before."""
    if not len(elements) or elements[-1] - elements[0] != len(elements) - 1:
        return False
    return bool((elements[1:] - elements[:-1] == 1).all())


def _whole_segments(elements: Array) -> Array:
    """Return the positions in a list of elements where all of a segment follows in order."""
    if _is_run(elements):
        return np.arange(-int(elements[0]) % SEGMENT, len(elements) - SEGMENT + 1, SEGMENT)
    starts: Array = np.flatnonzero(elements & (SEGMENT - 1) == 0)
    starts = starts[starts + SEGMENT <= len(elements)]
    whole: Array = elements[starts + SEGMENT - 1] - elements[starts] == SEGMENT - 1
    starts = starts[whole]
    if not len(starts):
        return starts
    neighbours = np.zeros(len(elements), dtype=np.int32)
    np.cumsum(elements[1:] - elements[:-1] == 1, dtype=np.int32, out=neighbours[1:])
    whole = neighbours[starts + SEGMENT - 1] - neighbours[starts] == SEGMENT - 1
    return starts[whole]


def _codes_of(numbers: Array) -> Array:
    """Return the code of each row of a segment's numbers, (segments, 32)."""
    beyond = numbers - numbers[:, :1]
    last = beyond[:, -1:] == _PATTERNS[:, -1]
    codes = np.where(last.any(axis=1), last.argmax(axis=1), EACH)
    return np.where((beyond == _BY_CODE[codes]).all(axis=1), codes, EACH).astype(np.uint8)
