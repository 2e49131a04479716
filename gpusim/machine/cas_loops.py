"""Compare-and-swap retry loops: the warps of a block that run an iteration at the same time.

The distance between a load and its swap is less than half of an iteration. With few warps, all
have loaded before the first one swaps, and the others fail; with many, not all are so early, and
two of them succeed in an iteration.
"""

from __future__ import annotations

import numpy as np

from gpusim.typing import Array

# Warps that load before the first swaps: blocks of 1 to 32 warps that add floats to one word of
# shared memory go round 32 times for each of up to 8 warps, and half as often from 16 on (H200).
MOST_TOGETHER = 8


def go_with(rows: Array, first: int, warps: int) -> Array:
    """Return a mask of the rows that run with row `first`, in blocks of `warps` warps."""
    if warps <= MOST_TOGETHER:
        return np.ones(len(rows), dtype=bool)
    return np.asarray((rows % warps < warps // 2) == (first % warps < warps // 2))
