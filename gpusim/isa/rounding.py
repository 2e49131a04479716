"""Exact results, rounded once, to single precision, half or bfloat16.

An exact result is a float64, rounded to odd where it has more bits: a second rounding is right
then. Results are bits in the lower end of a word; NaN has one pattern in each precision. A
direction is RM (down), RP (up), RZ (towards zero), or empty: to the nearest number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.typing import Array

F16, F32, F64 = np.float16, np.float32, np.float64
U16, U32 = np.uint16, np.uint32
DIRECTIONS = ("RM", "RP", "RZ")
_LOST_BITS = np.int64(45)  # of double precision's fraction, by bfloat16
_LEAST_BRAIN = 2.0**-133


@dataclass(frozen=True)
class Precision:
    """A precision: the bits of the number nearest to a float64, their value, its one NaN.

    A number has `bits` bits, the last ones its `fraction`.
    """

    nearest: Callable[[Array], Array]
    value: Callable[[Array], Array]
    nan: int
    least_normal: float
    bits: int
    fraction: int

    def nan_of(self, value: Array) -> Array:
        """Return the quiet NaN that has the sign and the first bits of a double's."""
        word = value.view(np.uint64)
        sign = word >> np.uint64(63) << np.uint64(self.bits - 1)
        fraction = (word & np.uint64((1 << 52) - 1)) >> np.uint64(52 - self.fraction)
        exponent = np.uint64((1 << self.bits - 1) - (1 << self.fraction - 1))
        return np.asarray(sign | exponent | fraction).astype(U32)


def _nearest_brain(exact: Array) -> Array:
    bits = exact.view(np.int64)
    half_way = np.int64(1) << (_LOST_BITS - 1)
    even = bits + half_way - 1 + ((bits >> _LOST_BITS) & 1)
    normal = (even & -(half_way + half_way)).view(F64)
    small = np.rint(exact / _LEAST_BRAIN) * _LEAST_BRAIN
    made = np.where(np.abs(exact) < BRAIN.least_normal, small, normal)
    word = np.where(np.isfinite(exact), made, exact).astype(F32).view(U32)
    return np.asarray(word >> U32(16))


SINGLE = Precision(
    lambda exact: exact.astype(F32).view(U32),
    lambda bits: bits.view(F32).astype(F64),
    nan=0x7FFFFFFF,
    least_normal=2.0**-126,
    bits=32,
    fraction=23,
)
HALF = Precision(
    lambda exact: exact.astype(F16).view(U16).astype(U32),
    lambda bits: bits.astype(U16).view(F16).astype(F64),
    nan=0x7FFF,
    least_normal=2.0**-14,
    bits=16,
    fraction=10,
)
BRAIN = Precision(
    _nearest_brain,
    lambda bits: (bits << U32(16)).view(F32).astype(F64),
    nan=0x7FFF,
    least_normal=2.0**-126,
    bits=16,
    fraction=7,
)
NAN = np.array(SINGLE.nan, dtype=U32).view(F32)


def rounded(exact: Array, precision: Precision, direction: str = "") -> Array:
    """Return the bits of exact results, rounded."""
    bits = precision.nearest(exact)
    if direction:
        bits = _directed(bits, exact, precision, direction)
    none = np.isnan(exact)
    return np.where(none, U32(precision.nan), bits) if np.count_nonzero(none) else bits


def _directed(bits: Array, exact: Array, precision: Precision, direction: str) -> Array:
    """Step from the nearest number to a neighbour: bits count up with the magnitude."""
    size, whole = np.abs(precision.value(bits)), np.abs(exact)
    towards_zero = bits - (size > whole)
    if direction == "RZ":
        return np.asarray(towards_zero)
    inexact = (size > whole) | (size < whole)
    outwards = np.signbit(exact) if direction == "RM" else ~np.signbit(exact)
    return np.asarray(towards_zero + (inexact & outwards))


def single(exact: Array, direction: str = "") -> Array:
    """Return exact results in single precision."""
    return rounded(exact, SINGLE, direction).view(F32)


def canonical(value: Array) -> Array:
    """Return single precision with the one NaN that the hardware makes."""
    none = np.isnan(value)
    return np.where(none, NAN, value) if np.count_nonzero(none) else value


def with_sign_of_zero(direction: str, total: Array, *terms: Array) -> Array:
    """Give an exact sum of zero its sign: rounding down, only a sum of positive zeros has none."""
    if direction != "RM":
        return total
    negative: Any = np.logical_or.reduce(np.broadcast_arrays(*map(np.signbit, terms)))
    return np.where((total == 0) & negative, F64(-0.0), total)


def towards(direction: str, near: Array, lost: Array) -> Array:
    """Step from the nearest double to a neighbour, by the sign of the rounding error."""
    if direction == "RM":
        return np.where(lost < 0, np.nextafter(near, -np.inf), near)
    if direction == "RP":
        return np.where(lost > 0, np.nextafter(near, np.inf), near)
    if direction == "RZ":
        return np.where(lost * np.sign(near) < 0, np.nextafter(near, F64(0)), near)
    return near
