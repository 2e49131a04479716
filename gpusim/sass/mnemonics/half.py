"""Half precision: two numbers in a register, the first in its upper half where both are named."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.comparisons import UNORDERED
from gpusim.isa.functions import SPECIAL
from gpusim.isa.fused import sum_to_odd
from gpusim.isa.ops import OPS
from gpusim.isa.rounding import BRAIN, F32, F64, HALF, SINGLE, U32, Precision, rounded
from gpusim.sass.form import Form, Signs
from gpusim.sass.mnemonics.floating import chosen_of_two, has_no_magnitudes
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.slots import TURNED
from gpusim.sass.table import row
from gpusim.typing import Array

COMPARES = " ".join([*UNORDERED, "AND OR XOR FTZ BF16_V2"])
# An operand of one number in either half of a register; its sign is the row's to look at.
HALF_OPERAND = {"signs": "-|", "suffixes": "H0 H1"}
BRAIN_V2 = "BF16_V2"  # bfloat16 instead of half precision


def _precision(form: Form) -> Precision:
    return HALF if form.modifiers.isdisjoint(("BF16", BRAIN_V2)) else BRAIN


def _normal(form: Form, value: Array) -> Array:
    """Return numbers with subnormal ones made zero, where the row has FTZ."""
    if "FTZ" not in form.modifiers:
        return value
    zero = np.copysign(F64(0), value)
    return np.where(np.abs(value) < _precision(form).least_normal, zero, value)


def _half(form: Form, value: Array, upper: bool) -> Array:
    bits = value >> U32(16) if upper else value  # upper bits are ignored
    return _normal(form, _precision(form).value(bits))


def _unsigned(form: Form, value: Array, signs: Signs) -> tuple[Array, Array]:
    """Return both numbers of an operand, the lower first, without its own sign.

    The suffix gives the order, and names the upper first; H0_NH1 of a complex number is its
    product with i, F32 one number of single precision for both.
    """
    if "F32" in signs.suffixes:
        both = value.view(F32).astype(F64)
        return both, both
    low, high = _half(form, value, False), _half(form, value, True)
    if TURNED in signs.suffixes:
        return np.negative(high), low
    if "H0_H0" in signs.suffixes:
        return low, low
    return (high, high) if "H1_H1" in signs.suffixes else (low, high)


def _two(form: Form, value: Array, signs: Signs) -> tuple[Array, Array]:
    """Return both numbers of an operand, the lower first."""
    low, high = _unsigned(form, value, signs)
    return signs.of(low), signs.of(high)


def _rounded(form: Form, exact: Array) -> Array:
    """Return the bits of an exact result, after the row's saturation."""
    if "SAT" in form.modifiers:
        exact = np.where(exact > 0, np.minimum(exact, 1.0), 0.0)
    if "RELU" in form.modifiers:
        exact = np.where(exact <= 0, 0.0, exact)
    if "F32" in form.modifiers:
        return rounded(exact, SINGLE, form.direction)
    precision = _precision(form)
    bits = rounded(exact, precision, form.direction)
    if "FTZ" not in form.modifiers:
        return bits
    small = np.abs(precision.value(bits)) < precision.least_normal
    return np.where(small, bits & U32(0x8000), bits)


def _packed(form: Form, low: Array, high: Array) -> Array:
    """Return two numbers in a register, rounded; the lower alone in full where the row has F32."""
    if "F32" in form.modifiers:
        return _rounded(form, low)
    return np.asarray(_rounded(form, low) | (_rounded(form, high) << U32(16)))


def _operands(form: Form, *values: Array) -> list[tuple[Array, Array]]:
    return [_two(form, value, signs) for value, signs in zip(values, form.signs, strict=False)]


@row("HADD2", "fma", "h", "hh", f"F32 FTZ SAT {BRAIN_V2}", suffixes="F32")
def add_halves(form: Form, a: Array, b: Array) -> Array:
    """Sums of half precision are exact in float64, unlike bfloat16's."""
    x, y = _operands(form, a, b)
    add = np.add if _precision(form) is HALF else sum_to_odd
    return _packed(form, add(x[0], y[0]), add(x[1], y[1]))


@row("HMUL2", "fma", "h", "hh", f"F32 FTZ SAT {BRAIN_V2}")
def multiply_halves(form: Form, a: Array, b: Array) -> Array:
    x, y = _operands(form, a, b)
    return _packed(form, x[0] * y[0], x[1] * y[1])


@row("HFMA2", "fma", "h", "hhh", f"MMA FTZ SAT RELU {BRAIN_V2}")
def multiply_add_halves(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding: products are exact, and sums are rounded to odd."""
    x, y, z = _operands(form, a, b, c)
    return _packed(form, sum_to_odd(x[0] * y[0], z[0]), sum_to_odd(x[1] * y[1], z[1]))


@row("HMNMX2", "alu", "h", "hhp", f"FTZ NAN {BRAIN_V2}")
def minimum_maximum_halves(form: Form, a: Array, b: Array, least: Array) -> Array:
    x, y = _operands(form, a, b)
    return _packed(form, *(chosen_of_two(form, p, q, least) for p, q in zip(x, y, strict=True)))


@row("VHMNMX", "alu", "h", "hhhp", f"NAN {BRAIN_V2}")
def minimum_maximum_of_three_halves(
    form: Form, a: Array, b: Array, c: Array, least: Array
) -> Array:
    pairs = zip(*_operands(form, a, b, c), strict=True)
    first = ((chosen_of_two(form, x, y, least), z) for x, y, z in pairs)
    return _packed(form, *(chosen_of_two(form, x, y, least) for x, y in first))


@row("HMNMX2.XORSIGN", "alu", "h", "hhp", f"FTZ NAN {BRAIN_V2}", refuses=has_no_magnitudes)
def minimum_maximum_half_magnitudes(form: Form, a: Array, b: Array, least: Array) -> Array:
    """The lesser or greater magnitude: operands stand between bars, and keep their signs here."""
    x, y = (_unsigned(form, word, signs) for word, signs in zip((a, b), form.signs, strict=False))
    return _packed(form, *(chosen_of_two(form, p, q, least) for p, q in zip(x, y, strict=True)))


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
    name = next(name for name in UNORDERED if name in form.modifiers)
    combine = one_of(form, COMBINATIONS)
    return tuple(combine(UNORDERED[name](p, q), also) for p, q in zip(x, y, strict=True))


@row("F2FP.PACK_AB F2FP.F16.PACK_AB F2FP.F16.F32.PACK_AB", "alu", "u", "ff", "RELU RZ")
@row("F2FP.BF16.PACK_AB F2FP.BF16.F32.PACK_AB", "alu", "u", "ff", "RELU RZ")
def pack_two(form: Form, a: Array, b: Array) -> Array:
    """Round two numbers of single precision, the first into the upper half."""
    return np.asarray(_narrowed(form, b) | (_narrowed(form, a) << U32(16)))


@row(
    "F2FP.MERGE_C F2FP.F16.F32.MERGE_C F2FP.BF16.MERGE_C F2FP.BF16.F32.MERGE_C",
    "alu", "u", "fu", "RELU RZ",
    refuses=lambda form: not form.signs[1].is_zero,
)  # fmt: skip
def round_one(form: Form, a: Array, rest: Array) -> Array:
    """Round a number of single precision; where another register would go is not known."""
    return _narrowed(form, a)


def _narrowed(form: Form, value: Array) -> Array:
    exact = value.astype(F64)
    if "RELU" in form.modifiers:
        exact = np.where(exact <= 0, 0.0, exact)
    return rounded(exact, _precision(form), form.direction)


@row(
    "MUFU.EX2.F16 MUFU.TANH.F16 MUFU.EX2.BF16 MUFU.TANH.BF16", OPS["MUFU"], "u", "r", **HALF_OPERAND
)
def special_function_of_half(form: Form, a: Array) -> Array:
    """A special function of one number of a register; the last bit may differ from this.

    The power of two of bfloat16 takes subnormal operands and results for zero.
    """
    signs = form.signs[0]
    made = one_of(form, SPECIAL)(signs.of(_half(form, a, "H1" in signs.suffixes)))
    if {"EX2", "BF16"} <= form.modifiers:
        made = np.where(made < BRAIN.least_normal, 0.0, made)
    return rounded(made, _precision(form), form.direction)
