"""Comparisons, the choice between two operands, and minimum and maximum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gpusim.isa import floats
from gpusim.isa.lookup_tables import logic
from gpusim.typing import Array

Comparison = Callable[[Array, Array], Array]

# By C's operators: a NaN is unequal to each number, and neither less nor greater.
COMPARISONS: Mapping[str, Comparison] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
# By SASS's names. Ordered comparisons are false for a NaN; with a U at the end they are true.
UNORDERED: Mapping[str, Comparison] = {
    **{name.upper(): compare for name, compare in COMPARISONS.items()},
    "NE": lambda a, b: (a < b) | (a > b),
    "NUM": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "LTU": lambda a, b: ~(a >= b),
    "LEU": lambda a, b: ~(a > b),
    "GTU": lambda a, b: ~(a <= b),
    "GEU": lambda a, b: ~(a < b),
    "EQU": lambda a, b: ~((a < b) | (a > b)),
    "NEU": np.not_equal,
    "NAN": lambda a, b: np.isnan(a) | np.isnan(b),
}


def set_predicate(chosen: Sequence[str], a: Array, b: Array, *also: Array) -> Array:
    """Compare; `chosen` is a comparison, and a logic operation where there is a third operand."""
    result = COMPARISONS[chosen[0]](a, b)
    return logic(chosen[1], result, *also) if also else result


def select(a: Array, b: Array, condition: Array) -> Array:
    """Return `a` in the lanes of a condition and `b` in the others."""
    return np.where(condition, a, b)


def minimum(a: Array, b: Array) -> Array:
    """Return the lesser of two numbers; of floating-point ones as `floats.minimum`."""
    return floats.minimum(a, b) if a.dtype.kind == "f" else np.minimum(a, b)


def maximum(a: Array, b: Array) -> Array:
    """Return the greater of two numbers; of floating-point ones as `floats.maximum`."""
    return floats.maximum(a, b) if a.dtype.kind == "f" else np.maximum(a, b)


def least_or_most(least: Array, a: Array, *others: Array) -> Array:
    """Return the minimum of some numbers in the lanes of a predicate, their maximum in the rest."""
    low = high = a
    for other in others:
        low, high = minimum(low, other), maximum(high, other)
    return np.where(least, low, high)


def minimum_maximum(which: str, a: Array, b: Array) -> Array:
    """Return the "min" or the "max" of two numbers."""
    return minimum(a, b) if which == "min" else maximum(a, b)
