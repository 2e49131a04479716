"""Distribution of a grid's blocks over SMs: the blocks of the busiest SM, the end of the launch.

The first wave is dealt to the SMs in turn, and each later block goes to the first free place. For
blocks of about equal duration that gives every n-th block. For others, an SM with long blocks gets
fewer: a strict round robin would give all working rows of a grid, with work in a part of its rows
and a width that shares a factor with the number of SMs, to one SM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapreplace

import numpy as np

from gpusim.typing import Array

# Excess of an SM with every n-th block over the mean, up to which blocks are not followed singly.
UNEVEN = 0.01


def blocks_of_busiest(work: Array, sms: int, resident: int) -> Sequence[int]:
    """Return the block numbers of the busiest SM.

    `work` is the work of each block of the grid; an SM holds `resident` blocks at a time.
    """
    totals = np.bincount(np.arange(len(work)) % sms, work, sms)
    first = int(totals.argmax())
    if totals[first] <= (1 + UNEVEN) * math.ceil(len(work) / sms) * work.mean():
        return range(first, len(work), sms)
    owners = _owners(work, sms, resident)
    busiest = np.bincount(owners, work, sms).argmax()
    found: list[int] = np.flatnonzero(owners == busiest).tolist()
    return found


def _owners(work: Array, sms: int, resident: int) -> Array:
    """Return each block's SM. A place on an SM is free at the end of its block's work."""
    places = sms * resident
    owners = np.arange(len(work)) % sms
    free = sorted((done, place) for place, done in enumerate(work[:places].tolist()))
    for block, own in enumerate(work[places:].tolist(), start=places):
        done, place = free[0]
        heapreplace(free, (done + own, place))
        owners[block] = place % sms
    return owners
