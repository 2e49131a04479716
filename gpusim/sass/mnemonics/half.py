"""Half precision: two numbers in a register, the first in its upper half where both are named."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa import Array
from gpusim.sass.form import Form, Signs
from gpusim.sass.mnemonics.floating import F32, F64, ORDERED
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.slots import TURNED
from gpusim.sass.table import row

F16 = np.float16
COMPARES = " ".join([*ORDERED, "AND OR XOR BF16_V2"])
U16, U32 = np.uint16, np.uint32
BRAIN = "BF16_V2"  # numbers with the range of single precision and 8 bits
_LOST_BITS = 45  # of those of double precision
_LEAST_BRAIN = 2.0**-133


def _half(form: Form, value: Array, upper: bool) -> Array:
    bits = value >> U32(16) if upper else value
    if BRAIN in form.modifiers:
        return (bits << U32(16)).view(F32).astype(F64)
    return bits.astype(U16).view(F16).astype(F64)


def _two(form: Form, value: Array, signs: Signs) -> tuple[Array, Array]:
    """Return both numbers of an operand, the lower first."""
    low, high = _in_order(signs, _half(form, value, False), _half(form, value, True))
    made = []
    for number in (low, high):
        number = np.abs(number) if signs.absolute else number
        made.append(np.negative(number) if signs.negated else number)
    return made[0], made[1]


def _in_order(signs: Signs, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the two halves of a register in the order of its suffix, which names the upper first.

    H0_NH1 of a complex number is its product with i.
    """
    if TURNED in signs.suffixes:
        return np.negative(high), low
    if "H0_H0" in signs.suffixes:
        return low, low
    return (high, high) if "H1_H1" in signs.suffixes else (low, high)


def _packed(form: Form, low: Array, high: Array) -> Array:
    """Return two numbers in a register, rounded; the lower alone in full where the row says F32."""
    if "SAT" in form.modifiers:
        low, high = (np.where(x > 0, np.minimum(x, 1.0), 0.0) for x in (low, high))
    if "F32" in form.modifiers:
        return low.astype(F32).view(U32)
    if BRAIN in form.modifiers:
        parts = [_brain_of(low), _brain_of(high)]
    else:
        parts = [x.astype(F16).view(U16).astype(U32) for x in (low, high)]
    return np.asarray(parts[0] | (parts[1] << U32(16)))


def _brain_of(exact: Array) -> Array:
    """Round double precision once to what is the upper half of single precision."""
    bits = exact.view(np.int64)
    lost = np.int64(1) << np.int64(_LOST_BITS)
    even = bits + (lost >> 1) - 1 + ((bits >> np.int64(_LOST_BITS)) & 1)
    normal = (even & -lost).view(F64)
    small = np.rint(exact / _LEAST_BRAIN) * _LEAST_BRAIN
    rounded = np.where(np.abs(exact) < np.finfo(F32).tiny, small, normal)
    word = np.where(np.isfinite(exact), rounded, exact).astype(F32).view(U32) >> U32(16)
    return np.asarray(np.where(np.isnan(exact), U32(0x7FFF), word))


def _operands(form: Form, *values: Array) -> list[tuple[Array, Array]]:
    return [_two(form, value, signs) for value, signs in zip(values, form.signs, strict=False)]


@row("HADD2", "fma", "h", "hh", f"F32 SAT {BRAIN}")
def add_halves(form: Form, a: Array, b: Array) -> Array:
    x, y = _operands(form, a, b)
    return _packed(form, x[0] + y[0], x[1] + y[1])


@row("HMUL2", "fma", "h", "hh", f"F32 SAT {BRAIN}")
def multiply_halves(form: Form, a: Array, b: Array) -> Array:
    x, y = _operands(form, a, b)
    return _packed(form, x[0] * y[0], x[1] * y[1])


@row("HFMA2", "fma", "h", "hhh", f"MMA SAT RELU {BRAIN}")
def multiply_add_halves(form: Form, a: Array, b: Array, c: Array) -> Array:
    x, y, z = _operands(form, a, b, c)
    low, high = x[0] * y[0] + z[0], x[1] * y[1] + z[1]
    if "RELU" in form.modifiers:
        low, high = np.fmax(low, 0.0), np.fmax(high, 0.0)
    return _packed(form, low, high)


@row("HMNMX2", "alu", "h", "hhp", BRAIN)
def minimum_maximum_halves(form: Form, a: Array, b: Array, least: Array) -> Array:
    x, y = _operands(form, a, b)
    low, high = (np.where(least, np.fmin(p, q), np.fmax(p, q)) for p, q in zip(x, y, strict=True))
    return _packed(form, low, high)


@row("HSETP2", "alu", "pp", "hhp", COMPARES)
def compare_halves(form: Form, a: Array, b: Array, also: Array) -> Any:
    return _compared(form, a, b, also)


@row("HSET2.BF", "alu", "h", "hhp", COMPARES)
def compared_halves_as_numbers(form: Form, a: Array, b: Array, also: Array) -> Array:
    """Give 1.0 where a comparison is true, 0.0 where it is not."""
    low, high = _compared(form, a, b, also)
    return _packed(form, low.astype(F64), high.astype(F64))


@row("HSET2", "alu", "u", "hhp", COMPARES)
def compared_halves_as_masks(form: Form, a: Array, b: Array, also: Array) -> Array:
    """Set all bits of a half where a comparison is true, none where it is not."""
    low, high = _compared(form, a, b, also)
    return np.asarray(np.where(low, U32(0xFFFF), U32(0)) | np.where(high, U32(0xFFFF0000), U32(0)))


def _compared(form: Form, a: Array, b: Array, also: Array) -> tuple[Array, ...]:
    x, y = _operands(form, a, b)
    name = next(name for name in ORDERED if name in form.modifiers)
    combine = one_of(form, COMBINATIONS)
    return tuple(combine(ORDERED[name](p, q), also) for p, q in zip(x, y, strict=True))


@row("F2FP.F16.F32.PACK_AB F2FP.PACK_AB F2FP.F16.PACK_AB", "alu", "u", "ff")
def pack_halves(form: Form, a: Array, b: Array) -> Array:
    parts = [x.astype(F16).view(U16).astype(U32) for x in (b, a)]
    return parts[0] | (parts[1] << U32(16))


@row("F2F.F16.F32", "xu", "u", "f")
def float_to_half(form: Form, a: Array) -> Array:
    return a.astype(F16).view(U16).astype(U32)


def _brain(a: Array) -> Array:
    """Round to the nearest number of which single precision has the upper half."""
    bits = a.view(U32)
    rounded = bits + U32(0x7FFF) + ((bits >> U32(16)) & U32(1))
    return np.where(np.isnan(a), U32(0x7FFF), rounded >> U32(16))


@row("F2FP.BF16.F32.PACK_AB F2FP.BF16.PACK_AB", "alu", "u", "ff")
def pack_brain_floats(form: Form, a: Array, b: Array) -> Array:
    return np.asarray(_brain(b) | (_brain(a) << U32(16)))
