"""Draws that are the same each time: numbers that lie evenly, however many of them there are.

They are the fractions of the multiples of some numbers (Roberts, "The Unreasonable Effectiveness of
Quasirandom Sequences", 2018). The first few of these may lie in clusters, where a number is near a
fraction like 6/7; points of a known number are moved apart to a Latin hypercube.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

GOLDEN = (math.sqrt(5) - 1) / 2  # fills one dimension
# By dimension d, the root of x^(d + 1) = x + 1.
_ROOTS = {3: 1.2207440846057596, 6: 1.1127756842787055}
# Of an exponential law that is drawn from the last hundredth is left out, which has no end.
MOST_DRAWN = 0.99
# A prime: numbers of warps or blocks and of their fetches do not meet.
FETCHES_APART = 4093


def multipliers(dimensions: int) -> Array:
    """Return the numbers whose multiples fill a cube of 3 or 6 dimensions evenly."""
    return _ROOTS[dimensions] ** -np.arange(1.0, dimensions + 1)


def spread(count: int, dimensions: int) -> Array:
    """Return points of a cube: in each of as many equal slices of each dimension lies one.

    They are in the order of the first dimension. Sequences keep their order along each dimension,
    and where in its slice a point lies the next dimension says (McKay, Beckman and Conover, "A
    Comparison of Three Methods for Selecting Values of Input Variables", 1979).
    """
    points = np.arange(1, count + 1)[:, None] * multipliers(dimensions) % 1.0
    slices = points.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    points = (slices + np.roll(points, 1, axis=1)) / count
    return np.asarray(points[points[:, 0].argsort(kind="stable")])
