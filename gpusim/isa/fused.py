"""Fused multiply-add: a * b + c, rounded once. NumPy has none.

Nearly all lanes are certain after exact products and sums in pairs; the few that could lie
half way between two numbers, or beyond the range of pairs, are computed once more with care.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim.typing import Array

# Lanes at a time: intermediate arrays stay in the cache, which makes 131,072 lanes 3 times as fast.
AT_A_TIME = 8192
SPLITTER = 134217729.0  # 2**27 + 1: halves the bits of a float64 (Dekker 1971)
# Of a float64, the bits beyond float32's, and their value half way between two numbers.
LOST = np.int64(0x1FFFFFFF)
HALF_WAY = np.int64(0x10000000)
EXPONENT = np.int64(0x7FF0000000000000)
SMALLEST_NORMAL = np.float64(2.0**-126).view(np.int64)  # of float32, as a float64's bits
SMALLEST_PRODUCT = 2.0**-960  # the rounding error of a smaller one may underflow
A_LITTLE_MORE = 1 + 2.0**-40  # covers the error of two sums in pairs, 2**-52 of their result
# Within these bounds products and their rounding errors neither overflow nor underflow.
SMALLEST_FACTOR, LARGEST_FACTOR, LARGEST_TERM = 2.0**-450, 2.0**480, 2.0**1000


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once: arrays of one type, with equally many axes."""
    multiply_add = _of_float32 if a.dtype == np.float32 else _of_float64
    whole = np.broadcast(a, b, c)
    if whole.size <= AT_A_TIME:
        return multiply_add(a, b, c)
    result = np.empty(whole.shape, a.dtype)
    axis = int(np.argmax(whole.shape))
    length = whole.shape[axis]
    step = max(1, length * AT_A_TIME // whole.size)
    for first in range(0, length, step):
        piece = (slice(None),) * axis + (slice(first, first + step),)
        parts = (x if x.shape[axis] == 1 else x[piece] for x in (a, b, c))
        result[piece] = multiply_add(*parts)
    return result


def _of_float32(a: Array, b: Array, c: Array) -> Array:
    """Products are exact in float64, and so are sums, except half way between two numbers."""
    product, term = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = np.asarray(product + term)
    bits = total.view(np.int64)
    near = np.asarray(total.astype(np.float32))
    doubtful = (bits & LOST) == HALF_WAY
    doubtful |= (bits & EXPONENT) < SMALLEST_NORMAL
    if np.count_nonzero(doubtful):
        doubtful &= total != 0  # a zero is exact
        product, term = (np.broadcast_to(x, total.shape)[doubtful] for x in (product, term))
        near[doubtful] = sum_to_odd(product, term).astype(np.float32)
    return near


def _of_float64(a: Array, b: Array, c: Array) -> Array:
    """Round an exact sum of three numbers; the sum of the two smaller ones is rounded first.

    That matters where the result comes close to half way between two numbers.
    """
    product, lost = exact_product(a, b)
    total, rest = exact_sum(product, c)
    rest = rest + lost
    near = np.asarray(total + rest)
    taken_off = (total - near) + rest
    # True after an overflow, too: infinities and NaN differ from their own sums.
    doubtful = near + taken_off * A_LITTLE_MORE != near
    small = np.abs(product) < SMALLEST_PRODUCT
    if np.count_nonzero(small):
        zero = (a == 0) | (b == 0)
        near = np.where(zero, total, near)
        doubtful |= small & ~zero
    if np.count_nonzero(doubtful):
        near[doubtful] = _with_care(*(x[doubtful] for x in np.broadcast_arrays(a, b, c)))
    return near


def _with_care(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of lanes in a row, by sums rounded to odd, or as fractions.

    By Boldo and Melquiond, IEEE Transactions on Computers 2008, where nothing overflows or
    underflows on the way.
    """
    usual = is_factor(a) & is_factor(b) & (np.abs(c) <= LARGEST_TERM)
    finite = np.isfinite(a) & np.isfinite(b)
    simple = np.where(finite & np.isinf(c), c, a * b + c)  # a product that overflows is finite
    result = np.where(usual, _in_pairs(a, b, c), simple)
    rounds_twice = ~usual & finite & (a != 0) & (b != 0) & np.isfinite(c)
    for place in np.flatnonzero(rounds_twice).tolist():
        result[place] = _as_fraction(float(a[place]), float(b[place]), float(c[place]))
    return result


def is_factor(value: Array) -> Array:
    """Return whether neither products with these nor their errors overflow or underflow."""
    size = np.abs(value)
    return np.asarray((size >= SMALLEST_FACTOR) & (size <= LARGEST_FACTOR))


def _in_pairs(a: Array, b: Array, c: Array) -> Array:
    product, lost = exact_product(a, b)
    low, lowest = exact_sum(c, lost)
    high, rest = exact_sum(product, low)
    return np.asarray(high + sum_to_odd(rest, lowest))


def exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a product and its rounding error."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(value: Array) -> tuple[Array, Array]:
    scaled = SPLITTER * value
    high = scaled - (scaled - value)
    return high, value - high


def exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum and its rounding error (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def sum_to_odd(a: Array, b: Array) -> Array:
    """Return a sum that, where it is not exact, has its last bit set, so that it rounds once more.

    Of the two neighbours of an inexact sum exactly one is odd.
    """
    total, lost = exact_sum(a, b)
    total = np.asarray(total)
    if not np.count_nonzero(lost):
        return total
    is_even = (total.view(np.int64) & 1) == 0
    towards = np.where(lost > 0, np.inf, -np.inf)
    inexact = (lost != 0) & is_even & np.isfinite(total)
    return np.where(inexact, np.nextafter(total, towards), total)


def left_out(near: Array, a: Array, b: Array, c: Array) -> Array:
    """Return the sign of a * b + c less the float64 `near`, the nearest to it.

    By Boldo and Muller, IEEE Transactions on Computers 2011, where nothing overflows or underflows
    on the way. NaN and results of infinity have no error.
    """
    near, a, b, c = np.broadcast_arrays(near, a, b, c)
    product, lost = exact_product(a, b)
    low, lowest = exact_sum(c, lost)
    high, rest = exact_sum(product, low)
    side = np.sign(((high - near) + rest) + lowest)
    usual = is_factor(a) & is_factor(b) & (np.abs(c) <= LARGEST_TERM)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    side = np.where(usual, side, 0.0)
    for place in zip(*np.nonzero(finite & ~usual), strict=True):
        side[place] = _side_of_fraction(*(float(one[place]) for one in (near, a, b, c)))
    return side


def _side_of_fraction(near: float, a: float, b: float, c: float) -> int:
    from fractions import Fraction

    if math.isinf(near):
        return -1 if near > 0 else 1
    rest = Fraction(a) * Fraction(b) + Fraction(c) - Fraction(near)
    return (rest > 0) - (rest < 0)


def _as_fraction(a: float, b: float, c: float) -> float:
    from fractions import Fraction  # imported here: it brings decimal along, and few need it

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    try:
        return float(exact) or (-0.0 if exact < 0 else 0.0)
    except OverflowError:
        return float("-inf") if exact < 0 else float("inf")
