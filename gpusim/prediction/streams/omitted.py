"""Accesses of iterations omitted from steps of compiled code: the last recorded ones, moved on."""

from __future__ import annotations

import numpy as np

from gpusim.launch.events import Accesses, Omitted
from gpusim.typing import Array


def further(accesses: Accesses, omitted: Omitted) -> tuple[Array, Array, Array, Array, Array]:
    """Return the stretches of omitted iterations, one after the other.

    The columns are the distance to the next recorded step, a negative number; the recorded step
    with the same instruction; the addresses of the first and last element; and the lanes.
    """
    at, period, times, _, strides = omitted
    low, high = np.searchsorted(accesses.at, (at - period, at))
    ends = np.append(0, np.cumsum(accesses.runs))
    mine = slice(int(ends[low]), int(ends[high]))
    step = np.repeat(accesses.at[low:high], accesses.runs[low:high])
    number = np.arange(1, times + 1)[:, None]
    ahead = step - at - period * (times - number)
    moved = strides * number
    first, last = ((column[mine] + moved).reshape(-1) for column in accesses[8:10])
    told, lanes = (np.tile(column, times) for column in (step, accesses.lanes[mine]))
    return ahead.reshape(-1), told, first, last, lanes
