"""Compare-and-swap retry loops: warps of a block load together, and then swap.

The distance between a load and its swap is less than half of an iteration. With few warps, all load
before the first one swaps, and all others fail, in any of the loops; with many, each half of the
block has a round of its own, and two warps succeed in an iteration.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from gpusim.machine.state import Splits
from gpusim.typing import Array

# Warps that load before the first swaps: blocks of 1 to 32 warps that add floats to one word of
# shared memory iterate 32 times for each of up to 8 warps, and half as often from 16 on (H200).
MOST_TOGETHER = 8
WHOLE_OR_FIRST, SECOND = 0, 1  # halves of a block


class Rounds:
    """Rounds of the warps of blocks in loops that swap: loads from `heads`, then `swaps`."""

    def __init__(self, heads: Set[int], swaps: Set[int], warps: int) -> None:
        self._heads, self._swaps = list(heads), list(swaps)
        self._warps = warps
        self._half = -1
        self._begun = 0

    def begin(self, splits: Splits, one: int, clock: int) -> None:
        """Begin the round of the half of its block that a split is in."""
        self._half = int(self._halves(splits.row[[one]])[0])
        self._begun = clock

    def following(self, splits: Splits, ready: Array) -> Array | None:
        """Return the splits at one pc that come next in the round, None at its end."""
        if self._half < 0:
            return None
        mine = ready[self._halves(splits.row[ready]) == self._half]
        pc = splits.pc[mine]
        loading = mine[np.isin(pc, self._heads) & (splits.last_run[mine] <= self._begun)]
        next_ones = loading if len(loading) else mine[np.isin(pc, self._swaps)]
        if not len(next_ones):
            self._half = -1
            return None
        which = next_ones[splits.pc[next_ones] == splits.pc[next_ones].min()]
        return np.asarray(which[np.argsort(splits.row[which], kind="stable")])

    def _halves(self, rows: Array) -> Array:
        if self._warps <= MOST_TOGETHER:
            return np.full(len(rows), WHOLE_OR_FIRST)
        return np.where(rows % self._warps < self._warps // 2, WHOLE_OR_FIRST, SECOND)
