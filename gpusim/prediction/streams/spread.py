"""How many latencies lines have that are fetched together: near lines mostly have one.

Measured on an idle NVIDIA H200: a warp waits for 2, 4 or 8 lines out of DRAM that lie 128 bytes
to 64 MB apart. For lines within 512 bytes the wait grows as if each beyond the first were a
quarter of a line with a latency of its own, within 4 KB three fifths, and beyond that four fifths.
The same line counts once. Both halves of the first line, 64 bytes of DRAM each, make it 1.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.memory import LINE_BYTES, NOWHERE, in_order

Array = np.ndarray[Any, Any]

WHOLE = 100
# The same line, and up to so many bytes apart, counts for so much of WHOLE.
NEAR_BYTES, MIDDLE_BYTES = 512, 4096
WEIGHTS = (0, 25, 60, 80)
BOTH_HALVES = 20
SECTORS_OF_HALF = 2
EARLIER = 8  # loads before, of which the nearest counts


def _classes(apart: Array) -> Array:
    """Return the place in WEIGHTS of distances in lines."""
    return np.searchsorted((0, NEAR_BYTES // LINE_BYTES, MIDDLE_BYTES // LINE_BYTES), apart)


def within(addresses: Array, on: Array) -> tuple[Array, Array]:
    """Return, per warp, the lowest line it touches, and what the others add, in parts of WHOLE.

    The lowest is -1 where no lane is on. Arrays have 32 lanes in their last axis.
    """
    lines = in_order(addresses // LINE_BYTES, on)
    lowest = np.where(lines[..., 0] < NOWHERE, lines[..., 0], -1)
    apart = np.diff(lines, axis=-1)
    counts = (apart > 0) & (lines[..., 1:] < NOWHERE)
    if not counts.any():
        return lowest, np.zeros(lowest.shape, dtype=np.int64)
    added = np.where(counts, np.array(WEIGHTS)[_classes(apart)], 0).sum(axis=-1)
    return lowest, added


def to_earlier(lowest: Array) -> Array:
    """Return how far a warp's accesses lie from those before, packed: two bits for each.

    `lowest` is the lowest line of each access in order, -1 for what does not load.
    """
    packed = np.zeros(len(lowest), dtype=np.int32)
    loads = np.flatnonzero(lowest >= 0)
    lines = lowest[loads]
    for back in range(1, min(EARLIER, len(lines) - 1) + 1):
        codes = _classes(np.abs(lines[back:] - lines[:-back])).astype(np.int32)
        packed[loads[back:]] |= codes << 2 * (back - 1)
    return packed


def added(packed: int, pending: int) -> int:
    """Return what an access's first line adds to `pending` accesses before it, of WHOLE."""
    codes = (packed >> 2 * back & 3 for back in range(min(pending, EARLIER)))
    return WEIGHTS[min(codes)]


def of_first(sectors: int, lines: int) -> int:
    """Return what the first of some accesses counts for, of WHOLE, its other lines aside."""
    has_both_halves = sectors > SECTORS_OF_HALF * lines
    return WHOLE + BOTH_HALVES * has_both_halves
