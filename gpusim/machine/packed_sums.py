"""Sums of atomic operations that NumPy lacks: packed halves, or flushed subnormals.

Each part of a word is rounded for itself, to nearest even. A NaN result has the
one bit pattern of its type that GPUs give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpusim.typing import Array

NAN_OF_FLOAT = np.uint32(0x7FFFFFFF)
NAN_OF_DOUBLE = np.uint64(0xFFF8 << 48).view(np.float64)
NAN_OF_HALF = np.uint16(0x7FFF)
# Sums of multiples of 2^-126 are no subnormal numbers; all from 2^-103 on are such multiples.
_SAFE = np.float32(2.0**-103)


def flushed(values: Array) -> Array:
    """Return single precision with zeros, of their signs, for subnormal numbers."""
    small = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), values), values)


def add_flushed(now: Array, value: Array) -> Array:
    """Return sums of single precision, with subnormal operands and results flushed to zero."""
    total = flushed(flushed(now) + flushed(value))
    return np.where(np.isnan(total), NAN_OF_FLOAT.view(np.float32), total)


def needs_no_flush(now: Array, values: Array) -> bool:
    """Return whether no sum of these numbers, in any order, is subnormal or NaN."""
    return all(
        bool(((size >= _SAFE) | (size == 0)).all() and np.isfinite(size).all())
        for size in (np.abs(now), np.abs(values))
    )


def add_doubles(now: Array, value: Array) -> Array:
    """Return sums of double precision; a NaN is that of the value, or else of the memory.

    Its bits are kept, also for a signaling NaN. Seen on an H200.
    """
    total = np.asarray(now + value)
    if not np.isnan(total).any():
        return total
    held = np.where(np.isnan(now), now, np.where(np.isnan(total), NAN_OF_DOUBLE, total))
    return np.where(np.isnan(value), value, held)


def stays_finite(now: Array, values: Array) -> bool:
    """Return whether no sum of these numbers, in any order, is infinite or NaN."""
    most = np.abs(now).max(initial=0) / 2 + (np.abs(values) / 2).sum()
    return bool(most < np.finfo(np.float64).max / 2)


def add_floats(now: Array, value: Array) -> Array:
    """Return sums of two or four of single precision in each word."""
    a, b = (np.ascontiguousarray(word).view(np.float32) for word in (now, value))
    return np.asarray(add_flushed(a, b).view(now.dtype))


def add_halves(now: Array, value: Array) -> Array:
    """Return sums of two of half precision in each word."""
    a, b = (np.ascontiguousarray(word).view(np.float16) for word in (now, value))
    total = a + b
    return np.asarray(
        np.where(np.isnan(total), NAN_OF_HALF.view(np.float16), total).view(np.uint32)
    )


def add_brain_halves(now: Array, value: Array) -> Array:
    """Return sums of two bfloat16 in each word."""
    a, b = (_parts(word).astype(np.uint32) << np.uint32(16) for word in (now, value))
    total = a.view(np.float32) + b.view(np.float32)
    bits = total.view(np.uint32)
    even = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    halves = (even >> np.uint32(16)).astype(np.uint16)
    return np.asarray(np.where(np.isnan(total), NAN_OF_HALF, halves).view(np.uint32))


def _parts(word: Array) -> Array:
    return np.ascontiguousarray(word).view(np.uint16)


SUMS: Mapping[str, Callable[[Array, Array], Array]] = {
    "add_flushed": add_flushed,
    "add_doubles": add_doubles,
    "add_floats": add_floats,
    "add_halves": add_halves,
    "add_brain_halves": add_brain_halves,
}
# The numbers, in memory and added to it, with a NumPy sum that is equal, and faster.
PLAIN: Mapping[str, Callable[[Array, Array], bool]] = {
    "add_flushed": needs_no_flush,
    "add_doubles": stays_finite,
}
