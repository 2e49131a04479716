"""Draws that are the same each time: numbers that lie evenly, however many of them there are.

They are the fractions of the multiples of some numbers (Roberts, "The Unreasonable Effectiveness of
Quasirandom Sequences", 2018).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

GOLDEN = (math.sqrt(5) - 1) / 2  # fills one dimension
# By dimension d, the root of x^(d + 1) = x + 1.
_ROOTS = {3: 1.2207440846057596, 4: 1.1673039782614187}
# Of an exponential law that is drawn from the last hundredth is left out, which has no end.
MOST_DRAWN = 0.99
# A prime: numbers of warps or blocks and of their fetches do not meet.
FETCHES_APART = 4093


def multipliers(dimensions: int) -> Array:
    """Return the numbers whose multiples fill a cube of 3 or 4 dimensions evenly."""
    return _ROOTS[dimensions] ** -np.arange(1.0, dimensions + 1)
