"""Shadow memory: the last writer and the readers of each element.

Two numbers of 64 bits for each element, in zero-filled arrays that occupy only the pages touched,
or two for each regular segment. Where flags beside the last access are not enough, a `History`
keeps the overwritten accesses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpusim.checking.element_access import (
    ATOMIC,
    BLOCK_SHIFT,
    BLOCKS,
    LANES,
    SEVERAL,
    THREAD_SHIFT,
    WARPS,
    ElementAccess,
    thread_of,
    time_of,
)
from gpusim.checking.history import History
from gpusim.host import lazy_memory
from gpusim.typing import Array

ANY = LANES | WARPS | BLOCKS


class Shadow:
    """The shadow of one memory: `writer` and `reader` of each element.

    Without a `history`, flags record that there were earlier accesses, and `other_writer` and
    `other_reader` keep one of them; a history keeps all. `stored` has the bits of the last stores
    if lanes differ. With `by_segment` regular segments take less memory.
    """

    def __init__(
        self, elements: int, history: History | None = None, *, by_segment: bool = False
    ) -> None:
        made: Callable[[int], Array | Segments] = Segments if by_segment else zeros
        self.writer, self.reader = made(elements), made(elements)
        self.other_writer, self.other_reader = zeros(elements), zeros(elements)
        self.stored = zeros(elements)
        self.history = history

    def for_blocks(self, blocks: Array) -> Shadow:
        """Return a shadow of each block's own memory, copied from the first block's."""
        history = None
        if self.history is not None:
            history = self.history.for_blocks(blocks, len(self.writer))
        made = Shadow(0, history)
        made.stored = np.tile(self.stored, len(blocks))
        later = (blocks - blocks[0])[:, None] << (BLOCK_SHIFT + THREAD_SHIFT)
        for name in ("writer", "reader", "other_writer", "other_reader"):
            known = getattr(self, name)
            setattr(made, name, np.where(known == 0, 0, known + later).reshape(-1))
        return made

    def read(self, touch: ElementAccess) -> None:
        """Record reads."""
        if self.history is None:
            _join(self.reader, self.other_reader, touch, self.reader[touch.element], 0)
        else:
            self._replace(self.history, self.reader, touch, 0)

    def write(self, touch: ElementAccess) -> Array | None:
        """Record writes.

        Returns a mask of entries with an element written by another entry of the touch as well.
        """
        if self.history is None:
            _join(self.writer, self.other_writer, touch, self.writer[touch.element], 0)
        else:
            self._replace(self.history, self.writer, touch, 0)
        lost = self.writer[touch.element] >> THREAD_SHIFT != touch.packed >> THREAD_SHIFT
        return lost if lost.any() else None

    def update(self, touch: ElementAccess) -> None:
        """Record atomic updates."""
        if self.history is None:
            known = self.writer[touch.element]
            known = np.where(known & ATOMIC, known, 0)
            _join(self.writer, self.other_writer, touch, known, ATOMIC)
        else:
            self._replace(self.history, self.writer, touch, ATOMIC)

    @staticmethod
    def _replace(history: History, slot: Array | Segments, touch: ElementAccess, mark: int) -> None:
        """Enter an access, and keep the accesses it overwrites if they are still needed."""
        known = slot[touch.element]
        outlived = history.outlive(known, touch)
        if outlived.any():
            history.add(touch.element[outlived], known[outlived])
        packed = touch.packed | mark
        slot[touch.element] = packed
        lost = slot[touch.element] != packed
        if lost.any():
            history.add(touch.element[lost], packed[lost])


def _join(
    shadow: Array | Segments, other: Array, touch: ElementAccess, known: Array, mark: int
) -> None:
    """Enter a touch beside the earlier accesses that are not ordered before it.

    Of these the last one of the largest scope stays as the `other`.
    """
    packed = touch.packed | mark
    if known.any():
        flags = _others(known, touch)
        apart = _apart(thread_of(known) ^ touch.thread)
        is_last = ((flags & apart) != 0) & (flags < 2 * apart)
        other[touch.element[is_last]] = known[is_last] & ~np.int64(ANY)
        packed |= flags
    shadow[touch.element] = packed
    kept = shadow[touch.element]
    lost = kept != packed
    if not lost.any():
        return
    element, kept, mine = touch.element[lost], kept[lost], packed[lost]
    apart = _apart(thread_of(kept) ^ thread_of(mine))
    flags = apart | (mine & ANY)
    for flag in SEVERAL:
        shadow[element[(flags & flag) != 0]] |= flag
    is_last = (apart != 0) & ((shadow[element] & ANY) < 2 * apart)
    other[element[is_last]] = mine[is_last] & ~np.int64(ANY)


def _apart(differs: Array) -> Array:
    """Return the flags of the largest scope in which these threads' numbers differ."""
    flags = np.where(differs >> 5, WARPS, np.where(differs, LANES, 0))
    return np.where(differs >> BLOCK_SHIFT, BLOCKS, flags)


def _others(known: Array, touch: ElementAccess) -> Array:
    """Return flags for the other threads of the access that are not ordered before it."""
    by = thread_of(known)
    apart = _apart(by ^ touch.thread)
    after_barrier = time_of(known) > touch.passed(by)
    after_meeting = after_barrier & (time_of(known) > touch.met(by))
    elsewhere = (apart == BLOCKS) & (known != 0)
    flags = np.where(after_barrier & (apart == WARPS), WARPS, 0)
    flags |= np.where(after_barrier & ~elsewhere, known & WARPS, 0)
    flags |= np.where(after_meeting & (apart <= LANES), apart | (known & LANES), 0)
    flags |= np.where(elsewhere, BLOCKS, 0) | (known & BLOCKS)
    return flags


# Threads of a warp mostly access neighbours. A segment of 32 elements then keeps the first
# element's number, and the pattern of the threads of the others; any other segment keeps one number
# an element.
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
