"""Shadow memory: who wrote each element last, and who has read it since.

Two numbers of 64 bits for each element, in arrays of zeros of which the system gives only the
pages that are touched. A number packs the time of the access (25 bits), the thread (34 bits:
block and thread of the block) and what others did alike since the last barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Others who made the same kind of access, unordered with the one that is kept: lanes of its warp,
# warps of its block, other blocks. ATOMIC marks a write as one.
LANES, WARPS, BLOCKS, ATOMIC = 1, 2, 4, 8
SEVERAL = (LANES, WARPS, BLOCKS)
THREAD_SHIFT, THREAD_BITS = 4, 34
TIME_SHIFT = THREAD_SHIFT + THREAD_BITS
LATEST_TIME = (1 << 25) - 1
BLOCK_SHIFT = 10  # threads of a block are numbered below 1024
MOST_BLOCKS = 1 << (THREAD_BITS - BLOCK_SHIFT)
_THREADS = np.int64((1 << THREAD_BITS) - 1)


def time_of(packed: Array) -> Array:
    """Return when accesses were made."""
    return packed >> TIME_SHIFT


def thread_of(packed: Array) -> Array:
    """Return who made accesses."""
    found: Array = (packed >> THREAD_SHIFT) & _THREADS
    return found


@dataclass(frozen=True)
class Touch:
    """The elements that a step touches, one entry for each lane and element.

    `element` is where in the shadow, `thread` who, `barrier` and `warp_sync` when the thread's
    barrier opened last and when its warp met last (one number where that is the same for all),
    `pairs` when it last met the lanes of its warp, where that differs by lane. `values` gives
    what is stored. An entry stands for so many `blocks` that do alike.
    """

    time: int
    element: Array
    thread: Array
    barrier: Array
    warp_sync: Array
    pairs: Array | None
    values: Callable[[], Array]
    blocks: int = 1

    @property
    def packed(self) -> Array:
        """The touch as the shadow keeps it."""
        return np.int64(self.time << TIME_SHIFT) | (self.thread << THREAD_SHIFT)

    def take(self, which: Array) -> Touch:
        """Return some of the entries."""

        def part(values: Array) -> Array:
            return values[which] if values.ndim else values

        return Touch(
            self.time,
            self.element[which],
            self.thread[which],
            part(self.barrier),
            part(self.warp_sync),
            None if self.pairs is None else self.pairs[which],
            lambda: self.values()[which],
            self.blocks,
        )

    def met(self, other: Array) -> Array:
        """Return when each thread last met another one of its warp."""
        if self.pairs is None:
            return self.warp_sync
        known = np.take_along_axis(self.pairs, (other & 31)[:, None], axis=1)[:, 0]
        return np.asarray(np.maximum(known, self.warp_sync))


@dataclass(frozen=True)
class Unordered:
    """Entries of a touch that no barrier orders after an earlier access, by how far apart."""

    within_warp: Array
    apart: Array

    @property
    def either(self) -> Array:
        """Entries of both kinds."""
        found: Array = self.within_warp | self.apart
        return found


def unordered(earlier: Array, touch: Touch) -> Unordered | None:
    """Return which of the earlier accesses nothing orders before a touch; None where all are."""
    after_barrier = time_of(earlier) > touch.barrier
    by = thread_of(earlier)
    differs = by ^ touch.thread
    elsewhere = ((differs >> BLOCK_SHIFT) != 0) & (earlier != 0)
    late = after_barrier | elsewhere | ((earlier & BLOCKS) != 0)
    if not late.any():
        return None
    other_warp = (differs >> 5) != 0
    apart = late & (other_warp | ((earlier & (WARPS | BLOCKS)) != 0))
    within = after_barrier & ~other_warp & (time_of(earlier) > touch.met(by))
    within &= (differs != 0) | ((earlier & LANES) != 0)
    return Unordered(within & ~apart, apart)


class Shadow:
    """The shadow of one memory: `writer` and `reader` of each element."""

    def __init__(self, elements: int) -> None:
        self.writer = np.zeros(elements, dtype=np.int64)
        self.reader = np.zeros(elements, dtype=np.int64)

    def for_blocks(self, blocks: Array) -> Shadow:
        """Return a shadow for the memory of each block, of which the first's stood for all."""
        made = Shadow(0)
        later = (blocks - blocks[0])[:, None] << (BLOCK_SHIFT + THREAD_SHIFT)
        for name in ("writer", "reader"):
            known = getattr(self, name)
            setattr(made, name, np.where(known == 0, 0, known + later).reshape(-1))
        return made

    def read(self, touch: Touch) -> None:
        """Take note of who reads."""
        _join(self.reader, touch, self.reader[touch.element], 0)

    def write(self, touch: Touch) -> Array | None:
        """Take note of who writes, and that nobody has read since.

        Returns the entries whose element another entry of the touch has written as well.
        """
        packed = touch.packed
        self.writer[touch.element] = packed
        self.reader[touch.element] = 0
        lost = self.writer[touch.element] != packed
        return lost if lost.any() else None

    def update(self, touch: Touch) -> None:
        """Take note of who writes by an atomic operation.

        It does not hide a plain store of the same thread that others do not know of yet.
        """
        known = self.writer[touch.element]
        atomic = (known & ATOMIC) != 0
        _join(self.writer, touch, np.where(atomic, known, 0), ATOMIC)
        own = ~atomic & (thread_of(known) == touch.thread) & (time_of(known) > touch.warp_sync)
        if own.any():
            self.writer[touch.element[own]] = known[own]


def _join(shadow: Array, touch: Touch, known: Array, mark: int) -> None:
    """Enter a touch beside those that nothing orders before it."""
    packed = touch.packed | mark
    if known.any():
        packed |= _others(known, touch)
    shadow[touch.element] = packed
    kept = shadow[touch.element]
    lost = kept != packed
    if not lost.any():
        return
    element, kept, mine = touch.element[lost], kept[lost], packed[lost]
    flags = _apart(thread_of(kept) ^ thread_of(mine)) | (mine & (LANES | WARPS | BLOCKS))
    for flag in SEVERAL:
        shadow[element[(flags & flag) != 0]] |= flag


def _apart(differs: Array) -> Array:
    """Return how far apart threads are whose numbers differ in these bits."""
    flags = np.where(differs >> 5, WARPS, np.where(differs, LANES, 0))
    return np.where(differs >> BLOCK_SHIFT, BLOCKS, flags)


def _others(known: Array, touch: Touch) -> Array:
    """Return flags for who else made the access, of those that nothing orders before it."""
    by = thread_of(known)
    apart = _apart(by ^ touch.thread)
    after_barrier = time_of(known) > touch.barrier
    after_meeting = after_barrier & (time_of(known) > touch.met(by))
    elsewhere = (apart == BLOCKS) & (known != 0)
    flags = np.where(after_barrier & (apart == WARPS), WARPS, 0)
    flags |= np.where(after_barrier & ~elsewhere, known & WARPS, 0)
    flags |= np.where(after_meeting & (apart <= LANES), apart | (known & LANES), 0)
    flags |= np.where(elsewhere, BLOCKS, 0) | (known & BLOCKS)
    return flags
