"""Quasi-random numbers: deterministic, evenly distributed for any count.

They are the fractional parts of multiples of some numbers (Roberts, "The Unreasonable Effectiveness
of Quasirandom Sequences", 2018). The first few may cluster, near a fraction like 6/7; a known
number of points is spread to a Latin hypercube.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim.typing import Array

GOLDEN = (math.sqrt(5) - 1) / 2  # fills one dimension
# By dimension d, the root of x^(d + 1) = x + 1.
_ROOTS = {3: 1.2207440846057596, 6: 1.1127756842787055}
# Quantile at which the unbounded tail of an exponential distribution is cut off.
MOST_DRAWN = 0.99
# A prime: products of warp or block numbers and fetch numbers stay distinct.
FETCHES_APART = 4093


def multipliers(dimensions: int) -> Array:
    """Return the multipliers of a sequence in 3 or 6 dimensions."""
    return _ROOTS[dimensions] ** -np.arange(1.0, dimensions + 1)


def spread(count: int, dimensions: int) -> Array:
    """Return points in the unit cube, shaped (count, dimensions): one in each slice of each axis.

    They are sorted by the first dimension. The order along each dimension is the sequence's; the
    position within a slice comes from the next dimension (McKay, Beckman and Conover, "A Comparison
    of Three Methods for Selecting Values of Input Variables", 1979).
    """
    points = np.arange(1, count + 1)[:, None] * multipliers(dimensions) % 1.0
    slices = points.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    points = (slices + np.roll(points, 1, axis=1)) / count
    return np.asarray(points[points[:, 0].argsort(kind="stable")])
