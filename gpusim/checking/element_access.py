"""A step's accesses to elements, packed into numbers, and the order of two by barriers.

A number packs the time of the access (25 bits), the thread (34 bits: block and thread of the
block) and flags for the scope of like accesses since the last barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpusim.typing import Array

# The scope of other accesses of the same kind, unordered with the kept one: lanes of its warp,
# warps of its block, other blocks. ATOMIC marks an atomic write.
LANES, WARPS, BLOCKS, ATOMIC = 1, 2, 4, 8
SEVERAL = (LANES, WARPS, BLOCKS)
THREAD_SHIFT, THREAD_BITS = 4, 34
TIME_SHIFT = THREAD_SHIFT + THREAD_BITS
LATEST_TIME = (1 << 25) - 1
BLOCK_SHIFT = 10  # threads of a block are numbered below 1024
MOST_BLOCKS = 1 << (THREAD_BITS - BLOCK_SHIFT)
LOCATION_SHIFT = 38  # elements of a memory; the bits above number the memory
BITS_FACTOR = np.int64(0x9E3779B1)  # joins the values of several blocks in one number
_THREADS = np.int64((1 << THREAD_BITS) - 1)


def time_of(packed: Array) -> Array:
    """Return the times of accesses."""
    return packed >> TIME_SHIFT


def thread_of(packed: Array) -> Array:
    """Return the threads of accesses."""
    found: Array = (packed >> THREAD_SHIFT) & _THREADS
    return found


def warp_of(thread: Array) -> Array:
    """Return the warp of their block that threads are in."""
    return np.asarray((thread & ((1 << BLOCK_SHIFT) - 1)) >> 5)


@dataclass(frozen=True)
class Heard:
    """The latest known times of the warps of a block, (rows, warps), and each entry's row."""

    known: Array
    rows: Array

    @property
    def every(self) -> Array:
        """The latest time of each warp known to each entry's thread."""
        return np.asarray(self.known[self.rows])

    def of(self, threads: Array) -> Array:
        """Return the latest time of another thread's warp known to each entry's thread."""
        return np.asarray(self.known[self.rows, warp_of(threads)])

    def take(self, which: Array) -> Heard:
        """Return some of the entries."""
        return Heard(self.known, self.rows[which])


class ClusterHeard(Protocol):
    """Times up to which threads of a cluster know each other's accesses."""

    def of(self, threads: Array) -> Array:
        """Return the last time of other threads known to each entry's; -1 outside the cluster."""

    def take(self, which: Array) -> ClusterHeard:
        """Return some of the entries."""


@dataclass(frozen=True)
class ElementAccess:
    """The elements that a step accesses, one entry for each lane and element.

    `element` is the place in the shadow, `thread` the accessing thread, `barrier` and `warp_sync`
    the times of the thread's last block barrier and warp synchronisation (one number if equal for
    all), `pairs` those with each lane of its warp, where they differ. `values` gives the stored
    values, (copies, entries): one copy, or one for each of the identical blocks. An entry
    represents `blocks` of them. `memory` is 0 for global memory, and tells blocks' shared memory
    apart. `heard` is present where barriers join some warps of a block, `of_cluster` where blocks
    are in clusters.
    """

    time: int
    element: Array
    thread: Array
    barrier: Array
    warp_sync: Array
    pairs: Array | None
    values: Callable[[], Array]
    blocks: int = 1
    memory: int = 0
    heard: Heard | None = None
    of_cluster: ClusterHeard | None = None

    @property
    def packed(self) -> Array:
        """The access as packed in the shadow."""
        return np.int64(self.time << TIME_SHIFT) | (self.thread << THREAD_SHIFT)

    @property
    def stored(self) -> Array:
        """A number for the bits stored by each entry; for those of all identical blocks.

        Where blocks store the same bits, it is that of one of them.
        """
        values = np.ascontiguousarray(self.values())
        bits = values.view(f"u{values.dtype.itemsize}").astype(np.int64)
        found = np.zeros_like(bits[0])
        for more in bits[:0:-1]:
            found = found * BITS_FACTOR + (more - bits[0])
        return np.asarray(found * BITS_FACTOR + bits[0])

    def take(self, which: Array) -> ElementAccess:
        """Return some of the entries."""

        def part(values: Array) -> Array:
            return values[which] if values.ndim else values

        return ElementAccess(
            self.time,
            self.element[which],
            self.thread[which],
            part(self.barrier),
            part(self.warp_sync),
            None if self.pairs is None else self.pairs[which],
            lambda: self.values()[:, which],
            self.blocks,
            self.memory,
            None if self.heard is None else self.heard.take(which),
            None if self.of_cluster is None else self.of_cluster.take(which),
        )

    def passed(self, other: Array) -> Array:
        """Return when each thread last passed a barrier that orders it after another's warp."""
        if self.heard is None:
            return self.barrier
        return np.asarray(np.maximum(self.barrier, self.heard.of(other)))

    def met(self, other: Array) -> Array:
        """Return the time of each thread's last synchronisation with another one of its warp."""
        if self.pairs is None:
            return self.warp_sync
        known = np.take_along_axis(self.pairs, (other & 31)[:, None], axis=1)[:, 0]
        return np.asarray(np.maximum(known, self.warp_sync))


@dataclass(frozen=True)
class Unordered:
    """Entries of an access that no barrier orders after an earlier one, by their distance."""

    within_warp: Array
    apart: Array

    @property
    def either(self) -> Array:
        """Entries of both kinds."""
        found: Array = self.within_warp | self.apart
        return found


def unordered(earlier: Array, touch: ElementAccess) -> Unordered | None:
    """Return the entries not ordered after the earlier accesses; None if all are."""
    by = thread_of(earlier)
    after_barrier = time_of(earlier) > touch.passed(by)
    differs = by ^ touch.thread
    elsewhere = ((differs >> BLOCK_SHIFT) != 0) & (earlier != 0)
    if touch.of_cluster is not None:
        is_late = time_of(earlier) > touch.of_cluster.of(by)
        after_barrier = is_late & (after_barrier | elsewhere)
        elsewhere &= is_late
    late = after_barrier | elsewhere | ((earlier & BLOCKS) != 0)
    if not late.any():
        return None
    other_warp = (differs >> 5) != 0
    apart = late & (other_warp | ((earlier & (WARPS | BLOCKS)) != 0))
    within = after_barrier & ~other_warp & (time_of(earlier) > touch.met(by))
    within &= (differs != 0) | ((earlier & LANES) != 0)
    return Unordered(within & ~apart, apart)
