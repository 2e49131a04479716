"""Exact results, rounded once as a row says, to single precision, half or bfloat16.

An exact result is a float64, rounded to odd where it has more bits: a second rounding is right
then. Results are bits in the lower end of a word; NaN has one pattern in each precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.isa.ops import Array
from gpusim.sass.form import Form

F16, F32, F64 = np.float16, np.float32, np.float64
U16, U32 = np.uint16, np.uint32
ROUNDINGS = "RN RM RP RZ"  # to nearest, down, up, towards zero
_DIRECTED = frozenset(("RM", "RP", "RZ"))
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


def is_directed(form: Form) -> bool:
    """Return whether a row rounds down, up or towards zero rather than to nearest."""
    return not _DIRECTED.isdisjoint(form.modifiers)


def rounded(form: Form, exact: Array, precision: Precision = SINGLE) -> Array:
    """Return the bits of exact results as the row rounds them."""
    bits = precision.nearest(exact)
    if is_directed(form):
        bits = _directed(form, bits, exact, precision)
    none = np.isnan(exact)
    return np.where(none, U32(precision.nan), bits) if np.count_nonzero(none) else bits


def _directed(form: Form, bits: Array, exact: Array, precision: Precision) -> Array:
    """Step from the nearest number to a neighbour: bits count up with the magnitude."""
    size, whole = np.abs(precision.value(bits)), np.abs(exact)
    towards_zero = bits - (size > whole)
    if "RZ" in form.modifiers:
        return np.asarray(towards_zero)
    inexact = (size > whole) | (size < whole)
    outwards = np.signbit(exact) if "RM" in form.modifiers else ~np.signbit(exact)
    return np.asarray(towards_zero + (inexact & outwards))


def single(form: Form, exact: Array) -> Array:
    """Return exact results in single precision."""
    return rounded(form, exact).view(F32)


def canonical(value: Array) -> Array:
    """Return single precision with the one NaN that the hardware makes."""
    none = np.isnan(value)
    return np.where(none, NAN, value) if np.count_nonzero(none) else value


def with_sign_of_zero(form: Form, total: Array, *terms: Array) -> Array:
    """Give an exact sum of zero its sign: rounding down, only a sum of positive zeros has none."""
    if "RM" not in form.modifiers:
        return total
    negative: Any = np.logical_or.reduce(np.broadcast_arrays(*map(np.signbit, terms)))
    return np.where((total == 0) & negative, F64(-0.0), total)


def towards(form: Form, near: Array, lost: Array) -> Array:
    """Step from the nearest double to a neighbour, by the sign of the rounding error."""
    if "RM" in form.modifiers:
        return np.where(lost < 0, np.nextafter(near, -np.inf), near)
    if "RP" in form.modifiers:
        return np.where(lost > 0, np.nextafter(near, np.inf), near)
    if "RZ" in form.modifiers:
        return np.where(lost * np.sign(near) < 0, np.nextafter(near, F64(0)), near)
    return near
