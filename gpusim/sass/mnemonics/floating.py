"""Single precision: sums, products, comparisons, and the special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.isa.comparisons import UNORDERED, least_or_most, select
from gpusim.isa.functions import SPECIAL
from gpusim.isa.fused import fused_multiply_add, sum_to_odd
from gpusim.isa.integers import signed_sum
from gpusim.isa.ops import OPS
from gpusim.isa.rounding import F32, F64, canonical, single, with_sign_of_zero
from gpusim.sass.form import ROUNDINGS, Form
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.table import row
from gpusim.typing import Array

LEAST_NORMAL = F32(np.finfo(np.float32).tiny)

COMPARES = " ".join([*UNORDERED, "AND OR XOR"])


def flushed(form: Form, value: Array) -> Array:
    """Return numbers with subnormal ones made zero, where the row has FTZ."""
    return normal(value) if "FTZ" in form.modifiers else value


def normal(value: Array) -> Array:
    """Return numbers with subnormal ones made zero."""
    return np.where(np.abs(value) < LEAST_NORMAL, np.copysign(F32(0), value), value)


def _finished(form: Form, value: Array, exact: Callable[[], Array] | None = None) -> Array:
    """Return results flushed and saturated; `exact` gives inexact and small ones."""
    if "SAT" in form.modifiers:
        value = np.where(value > 0, np.minimum(value, F32(1)), F32(0))
    value = flushed(form, value)
    if exact is not None and "FTZ" in form.modifiers:
        value = _without_least(form, value, exact)
    return canonical(value)


def _without_least(form: Form, value: Array, exact: Callable[[], Array]) -> Array:
    """Make zero of the least normal number where it is less with an exponent of any size.

    Measured on an H200 for products that have room for all bits then; nearer ones are not.
    """
    least = np.abs(value) == LEAST_NORMAL
    if not np.count_nonzero(least):
        return value
    scale = 2.0**64
    small = np.abs(single(exact() * scale, form.direction)) < LEAST_NORMAL * F32(scale)
    return np.where(least & small, np.copysign(F32(0), value), value)


@row("FADD UFADD", OPS["FADD"], "f", "ff", f"FTZ SAT {ROUNDINGS}")
def add_floats(form: Form, a: Array, b: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    if form.direction:
        total = sum_to_odd(a.astype(F64), b.astype(F64))
        total = with_sign_of_zero(form.direction, total, a, b)
        return _finished(form, single(total, form.direction))
    return _finished(form, signed_sum(None, a, b))


# Factors of a product before it is rounded.
SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}


@row("FMUL UFMUL", OPS["FMUL"], "f", "ff", f"FTZ SAT {ROUNDINGS} {' '.join(SCALES)}")
def multiply_floats(form: Form, a: Array, b: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    scaled = form.modifiers & SCALES.keys()
    scale = F64(SCALES[min(scaled)] if scaled else 1)

    def exact() -> Array:
        return a.astype(F64) * b.astype(F64) * scale

    value = single(exact(), form.direction) if scaled or form.direction else a * b
    return _finished(form, value, exact)


@row("FFMA UFFMA", OPS["FFMA"], "f", "fff", f"FTZ SAT {ROUNDINGS}")
def multiply_add_floats(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding."""
    a, b, c = flushed(form, a), flushed(form, b), flushed(form, c)

    def exact() -> Array:
        product = a.astype(F64) * b.astype(F64)
        return with_sign_of_zero(form.direction, sum_to_odd(product, c.astype(F64)), product, c)

    value = single(exact(), form.direction) if form.direction else fused_multiply_add(a, b, c)
    return _finished(form, value, exact)


def chosen_of_two(form: Form, a: Array, b: Array, least: Array) -> Array:
    """Return the lesser or the greater; with the modifier NAN, NaN if an operand is NaN.

    XORSIGN takes magnitudes and gives the result both signs, one times the other.
    """
    if "XORSIGN" in form.modifiers:
        size = least_or_most(least, np.abs(a), np.abs(b))
        chosen = np.where(np.signbit(a) ^ np.signbit(b), np.negative(size), size)
    else:
        chosen = least_or_most(least, a, b)
    if "NAN" in form.modifiers:
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), chosen)
    return chosen


@row("FMNMX UFMNMX", OPS["FMNMX"], "f", "ffp", "FTZ NAN")
def minimum_maximum_floats(form: Form, a: Array, b: Array, least: Array) -> Array:
    return canonical(chosen_of_two(form, flushed(form, a), flushed(form, b), least))


@row("FMNMX3 UFMNMX3", OPS["FMNMX"], "f", "fffp", "FTZ NAN")
def minimum_maximum_of_three_floats(
    form: Form, a: Array, b: Array, c: Array, least: Array
) -> Array:
    a, b, c = flushed(form, a), flushed(form, b), flushed(form, c)
    return canonical(chosen_of_two(form, chosen_of_two(form, a, b, least), c, least))


def has_no_magnitudes(form: Form) -> bool:
    """Return whether an operand does not stand between bars alone."""
    return not all(signs.absolute and not signs.negated for signs in form.signs[:2])


@row(
    "FMNMX.XORSIGN", OPS["FMNMX"], "f", "rrp", "FTZ NAN",
    signs="| | !", refuses=has_no_magnitudes,
)  # fmt: skip
def minimum_maximum_magnitudes(form: Form, a: Array, b: Array, least: Array) -> Array:
    """The lesser or greater magnitude: operands stand between bars, and keep their signs here."""
    a, b = (flushed(form, word.view(F32)) for word in (a, b))
    return canonical(chosen_of_two(form, a, b, least))


@row("FSETP UFSETP", OPS["FSETP"], "pp", "ffp", f"FTZ {COMPARES}")
def compare_floats(form: Form, a: Array, b: Array, also: Array) -> Any:
    a, b = flushed(form, a), flushed(form, b)
    name = next(name for name in UNORDERED if name in form.modifiers)
    result = UNORDERED[name](a, b)
    combine = one_of(form, COMBINATIONS)
    other = combine(~result, also) if 1 in form.kept else None
    return combine(result, also), other


@row("FSET.BF", "alu", "f", "ffp", f"FTZ {COMPARES}")
def compare_to_float(form: Form, a: Array, b: Array, also: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    name = next(name for name in UNORDERED if name in form.modifiers)
    return np.asarray(one_of(form, COMBINATIONS)(UNORDERED[name](a, b), also).astype(F32))


@row("FSEL UFSEL", OPS["FSEL"], "f", "ffp", "FTZ")
def select_float(form: Form, a: Array, b: Array, condition: Array) -> Array:
    return select(flushed(form, a), flushed(form, b), condition)


@row("FCHK", OPS["FCHK"], "p", "ff")
def check_division(form: Form, a: Array, b: Array) -> Array:
    """Return whether a quotient leaves the range of reciprocal and Newton's steps.

    A divisor or dividend is not a normal number, its reciprocal or the quotient is none, or the
    remainder would be too small.
    """
    top, bottom = (((x.view(np.uint32) >> 23) & 255).astype(np.int64) for x in (a, b))
    quotient = top - bottom
    safe = (bottom > 0) & (bottom < 253) & (top > 24) & (top < 255)
    return ~(safe & (quotient > -125) & (quotient < 126))


KEEPS_SUBNORMALS = "TANH"


@row("MUFU", OPS["MUFU"], "f", "f", " ".join(SPECIAL))
def special_function(form: Form, a: Array) -> Array:
    """A special function; angles in turns. The hardware's last bit may differ from this.

    Subnormal operands and results count as zero, but for TANH: compilers scale operands around it.
    """
    function = one_of(form, SPECIAL)
    if KEEPS_SUBNORMALS in form.modifiers:
        return canonical(function(a.astype(F64)).astype(F32))
    return canonical(normal(function(normal(a).astype(F64)).astype(F32)))
