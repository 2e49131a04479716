"""Floating-point operations that NumPy lacks or leaves open, as GPUs compute them.

Minimum and maximum prefer a number to NaN and take -0 for less than +0. Arrays in, arrays out, in
the type of the operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.typing import Array


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
    """Return where both are zeros: NumPy returns either, by its vectors' width.

    The test for any zero in the result makes this ten times faster.
    """
    if not np.any(result == 0):
        return None
    return np.asarray((a == 0) & (b == 0))


def power(a: Array, b: Array) -> Array:
    """Return a**b as C's pow does: NumPy takes the root for an exponent of 0.5 that is constant.

    The root of -0 is -0 and that of -infinity NaN; their powers are 0 and infinity.
    """
    result = np.power(a, b)
    if not np.any(b == 0.5):
        return result
    return np.where((b == 0.5) & ((a == 0) | np.isinf(a)), np.abs(a), result)


def order(values: Array) -> Array:
    """Return integers that are ordered as `values` are, -0 before +0 and NaN at an end."""
    bits = values.view(np.dtype(f"i{values.dtype.itemsize}"))
    return np.asarray(bits ^ (bits >> _sign_place(bits)) & np.iinfo(bits.dtype).max)


def from_order(keys: Array, dtype: np.dtype[Any]) -> Array:
    """Return the values that `order` gives these integers for."""
    return np.asarray(keys ^ (keys >> _sign_place(keys)) & np.iinfo(keys.dtype).max).view(dtype)


def _sign_place(bits: Array) -> Any:
    return bits.dtype.type(bits.dtype.itemsize * 8 - 1)
