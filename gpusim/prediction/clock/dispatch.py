"""Which blocks of the grid one SM gets: the one that has the most work, for a launch ends with it.

A grid's first blocks are dealt to the SMs in turn, and each later one goes where room is first.
Every n-th block is what comes of that where blocks take equally long, or nearly. Where they do not,
an SM that has got long ones gets fewer: rows of which only a part is worked on, in a grid whose
width shares a factor with the number of SMs, would else all be one SM's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapreplace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# How far an SM with every n-th block may be above the mean until blocks are followed one by one.
UNEVEN = 0.01


def blocks_of_busiest(work: Array, sms: int, resident: int) -> Sequence[int]:
    """Return the numbers of an SM's blocks: `work` is what each block of the grid has to do.

    An SM has room for so many `resident` blocks.
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
    """Return each block's SM. A place on an SM is free when its block's work is done."""
    places = sms * resident
    owners = np.arange(len(work)) % sms
    free = sorted((done, place) for place, done in enumerate(work[:places].tolist()))
    for block, own in enumerate(work[places:].tolist(), start=places):
        done, place = free[0]
        heapreplace(free, (done + own, place))
        owners[block] = place % sms
    return owners
