"""Loops that swap until they get through: which warps of a block go round one at the same time.

What lies between a load and its swap is less than half of a turn. Of a few warps all have loaded
before the first of them swaps, which is in vain for the others; of many not all come so early, and
two of them get through in a turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.ops import SPIN, Program
from gpusim.program.flow import loop_bodies
from gpusim.program.memoisation import once

Array = np.ndarray[Any, Any]

# Warps that load before the first swaps: blocks of 1 to 32 warps that add floats to one word of
# shared memory go round 32 times for each of up to 8 warps, and half as often from 16 on (H200).
MOST_TOGETHER = 8


@once
def heads(program: Program) -> frozenset[int]:
    """Return where the innermost loops begin in which a program swaps until it gets through."""
    swaps = [pc for pc, row in enumerate(program.instructions) if row.op == SPIN]
    around = ([body for body in loop_bodies(program) if pc in body] for pc in swaps)
    return frozenset(bodies[0].start for bodies in around if bodies)


def go_with(rows: Array, first: int, warps: int) -> Array:
    """Return which warps go with the one in row `first`, where blocks have so many warps."""
    if warps <= MOST_TOGETHER:
        return np.ones(len(rows), dtype=bool)
    return np.asarray((rows % warps < warps // 2) == (first % warps < warps // 2))
