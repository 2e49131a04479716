"""Floating-point operations that NumPy lacks or leaves open, as GPUs compute them.

A fused multiply-add rounds once; minimum and maximum prefer a number to NaN and take -0 for less
than +0. Arrays in, arrays out, in the type of the operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SPLITTER = 134217729.0  # 2**27 + 1: halves the bits of a float64 (Dekker 1971)
# Of a float64, the bits that float32 has no room for, and those bits half way between two.
LOST = np.int64(0x1FFFFFFF)
HALF_WAY = np.int64(0x10000000)
EXPONENT = np.int64(0x7FF0000000000000)
SMALLEST_NORMAL = np.float64(2.0**-126).view(np.int64)  # of float32, as a float64's bits
# Within these bounds products and what they lose neither overflow nor underflow.
SMALLEST_FACTOR, LARGEST_FACTOR, LARGEST_TERM = 2.0**-450, 2.0**480, 2.0**1000


def minimum(a: Array, b: Array) -> Array:
    """Return the lesser of two; a NaN loses against a number."""
    least = np.fmin(a, b)
    zeros = _both_zero(a, b, least)
    return least if zeros is None else np.where(zeros, np.where(np.signbit(a), a, b), least)


def maximum(a: Array, b: Array) -> Array:
    """Return the greater of two; a NaN loses against a number."""
    most = np.fmax(a, b)
    zeros = _both_zero(a, b, most)
    return most if zeros is None else np.where(zeros, np.where(np.signbit(a), b, a), most)


def _both_zero(a: Array, b: Array, result: Array) -> Array | None:
    """Return where both are zeros, of which NumPy takes either, as its vectors happen to fall.

    Looking first whether the result has zeros at all is ten times faster.
    """
    if not np.any(result == 0):
        return None
    return np.asarray((a == 0) & (b == 0))


def order(values: Array) -> Array:
    """Return integers that are ordered as `values` are, -0 before +0 and NaN at an end."""
    bits = values.view(np.dtype(f"i{values.dtype.itemsize}"))
    return np.asarray(bits ^ (bits >> _sign_place(bits)) & np.iinfo(bits.dtype).max)


def from_order(keys: Array, dtype: np.dtype[Any]) -> Array:
    """Return the values that `order` gives these integers for."""
    return np.asarray(keys ^ (keys >> _sign_place(keys)) & np.iinfo(keys.dtype).max).view(dtype)


def _sign_place(bits: Array) -> Any:
    return bits.dtype.type(bits.dtype.itemsize * 8 - 1)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once."""
    return _of_float32(a, b, c) if a.dtype == np.float32 else _of_float64(a, b, c)


def _of_float32(a: Array, b: Array, c: Array) -> Array:
    """Products are exact in float64, and so are sums but for those that lie half way."""
    product, term = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = np.asarray(product + term)
    bits = total.view(np.int64)
    doubtful = (bits & LOST) == HALF_WAY
    doubtful |= (bits & EXPONENT) < SMALLEST_NORMAL
    near = np.asarray(total.astype(np.float32))
    if doubtful.any():
        product, term = np.broadcast_arrays(product, term)
        near[doubtful] = _sum_to_odd(product[doubtful], term[doubtful]).astype(np.float32)
    return near


def _of_float64(a: Array, b: Array, c: Array) -> Array:
    """Exact products and sums in pairs (Boldo and Melquiond, IEEE Transactions on Computers 2008).

    Where those could overflow or underflow, the few lanes are computed as fractions.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    usual = _is_factor(a) & _is_factor(b) & (np.abs(c) <= LARGEST_TERM)
    result = _in_pairs(a, b, c)
    if usual.all():
        return result
    result = np.where(usual, result, a * b + c)
    rounds_twice = ~usual & (a != 0) & (b != 0) & (c != 0)
    rounds_twice &= np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    for place in map(tuple, np.argwhere(rounds_twice)):
        result[place] = _as_fraction(float(a[place]), float(b[place]), float(c[place]))
    return result


def _is_factor(value: Array) -> Array:
    size = np.abs(value)
    return np.asarray((size >= SMALLEST_FACTOR) & (size <= LARGEST_FACTOR))


def _in_pairs(a: Array, b: Array, c: Array) -> Array:
    product, lost = _exact_product(a, b)
    low, lowest = _exact_sum(c, lost)
    high, rest = _exact_sum(product, low)
    return np.asarray(high + _sum_to_odd(rest, lowest))


def _exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a product and what rounding took off it."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(value: Array) -> tuple[Array, Array]:
    scaled = SPLITTER * value
    high = scaled - (scaled - value)
    return high, value - high


def _exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum and what rounding took off it (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _sum_to_odd(a: Array, b: Array) -> Array:
    """Return a sum that, where it is not exact, has its last bit set, so that it rounds once more.

    Of the two neighbours of an inexact sum exactly one is odd.
    """
    total, lost = _exact_sum(a, b)
    total = np.asarray(total)
    is_even = (total.view(np.int64) & 1) == 0
    towards = np.where(lost > 0, np.inf, -np.inf)
    inexact = (lost != 0) & is_even & np.isfinite(total)
    return np.where(inexact, np.nextafter(total, towards), total)


def _as_fraction(a: float, b: float, c: float) -> float:
    from fractions import Fraction  # imported here: it brings decimal along, and few need it

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    try:
        return float(exact) or (-0.0 if exact < 0 else 0.0)
    except OverflowError:
        return float("-inf") if exact < 0 else float("inf")
