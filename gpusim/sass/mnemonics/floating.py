"""Single precision: sums, products, comparisons, and the special functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.isa.fused import fused_multiply_add, sum_to_odd
from gpusim.isa.ops import Array
from gpusim.sass.form import Form
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.rounding import (
    F32,
    F64,
    ROUNDINGS,
    canonical,
    is_directed,
    single,
    with_sign_of_zero,
)
from gpusim.sass.table import row

LEAST_NORMAL = F32(np.finfo(np.float32).tiny)

# Comparisons of two numbers; with a U they are true of what is no number as well.
ORDERED: Mapping[str, Callable[[Array, Array], Array]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
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
COMPARES = " ".join([*ORDERED, "AND OR XOR"])


def flushed(form: Form, value: Array) -> Array:
    """Return numbers with those too small to be normal made zero, where the row says FTZ."""
    return normal(value) if "FTZ" in form.modifiers else value


def normal(value: Array) -> Array:
    """Return numbers with those too small to be normal made zero."""
    return np.where(np.abs(value) < LEAST_NORMAL, np.copysign(F32(0), value), value)


def _finished(form: Form, value: Array, exact: Callable[[], Array] | None = None) -> Array:
    """Return results flushed and saturated; `exact` gives those that may be inexact and small."""
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
    small = np.abs(single(form, exact() * scale)) < LEAST_NORMAL * F32(scale)
    return np.where(least & small, np.copysign(F32(0), value), value)


@row("FADD", "fma", "f", "ff", f"FTZ SAT {ROUNDINGS}")
def add_floats(form: Form, a: Array, b: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    if is_directed(form):
        total = with_sign_of_zero(form, sum_to_odd(a.astype(F64), b.astype(F64)), a, b)
        return _finished(form, single(form, total))
    return _finished(form, a + b)


# What a product is multiplied by before it is rounded.
SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}


@row("FMUL", "fma", "f", "ff", f"FTZ SAT {ROUNDINGS} {' '.join(SCALES)}")
def multiply_floats(form: Form, a: Array, b: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    scaled = form.modifiers & SCALES.keys()
    scale = F64(SCALES[min(scaled)] if scaled else 1)

    def exact() -> Array:
        return a.astype(F64) * b.astype(F64) * scale

    value = single(form, exact()) if scaled or is_directed(form) else a * b
    return _finished(form, value, exact)


@row("FFMA", "fma", "f", "fff", f"FTZ SAT {ROUNDINGS}")
def multiply_add_floats(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding."""
    a, b, c = flushed(form, a), flushed(form, b), flushed(form, c)

    def exact() -> Array:
        product = a.astype(F64) * b.astype(F64)
        return with_sign_of_zero(form, sum_to_odd(product, c.astype(F64)), product, c)

    value = single(form, exact()) if is_directed(form) else fused_multiply_add(a, b, c)
    return _finished(form, value, exact)


def least_or_most(a: Array, b: Array, least: Array) -> Array:
    """Return the lesser, or the greater, of two; a NaN loses, and -0 is less than +0."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    low = np.where(a == b, (a.view(bits) | b.view(bits)).view(a.dtype), np.fmin(a, b))
    high = np.where(a == b, (a.view(bits) & b.view(bits)).view(a.dtype), np.fmax(a, b))
    return np.where(least, low, high)


def chosen_of_two(form: Form, a: Array, b: Array, least: Array) -> Array:
    """Return the lesser or the greater; where the row says NAN, that is no number if one is none.

    XORSIGN takes magnitudes and gives the result both signs, one times the other.
    """
    if "XORSIGN" in form.modifiers:
        size = least_or_most(np.abs(a), np.abs(b), least)
        chosen = np.where(np.signbit(a) ^ np.signbit(b), np.negative(size), size)
    else:
        chosen = least_or_most(a, b, least)
    if "NAN" in form.modifiers:
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), chosen)
    return chosen


@row("FMNMX", "alu", "f", "ffp", "FTZ NAN")
def minimum_maximum_floats(form: Form, a: Array, b: Array, least: Array) -> Array:
    return canonical(chosen_of_two(form, flushed(form, a), flushed(form, b), least))


def has_no_magnitudes(form: Form) -> bool:
    """Return whether an operand does not stand between bars alone."""
    return not all(signs.absolute and not signs.negated for signs in form.signs[:2])


@row(
    "FMNMX.XORSIGN", "alu", "f", "rrp", "FTZ NAN",
    signs="| | !", refuses=has_no_magnitudes,
)  # fmt: skip
def minimum_maximum_magnitudes(form: Form, a: Array, b: Array, least: Array) -> Array:
    """The lesser or greater magnitude: operands stand between bars, and keep their signs here."""
    a, b = (flushed(form, word.view(F32)) for word in (a, b))
    return canonical(chosen_of_two(form, a, b, least))


@row("FSETP", "alu", "pp", "ffp", f"FTZ {COMPARES}")
def compare_floats(form: Form, a: Array, b: Array, also: Array) -> Any:
    a, b = flushed(form, a), flushed(form, b)
    name = next(name for name in ORDERED if name in form.modifiers)
    result = ORDERED[name](a, b)
    combine = one_of(form, COMBINATIONS)
    other = combine(~result, also) if 1 in form.kept else None
    return combine(result, also), other


@row("FSET.BF", "alu", "f", "ffp", f"FTZ {COMPARES}")
def compare_to_float(form: Form, a: Array, b: Array, also: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    name = next(name for name in ORDERED if name in form.modifiers)
    return np.asarray(one_of(form, COMBINATIONS)(ORDERED[name](a, b), also).astype(F32))


@row("FSEL", "alu", "f", "ffp", "FTZ")
def select_float(form: Form, a: Array, b: Array, condition: Array) -> Array:
    return np.where(condition, flushed(form, a), flushed(form, b))


@row("FCHK", "alu", "p", "ff")
def check_division(form: Form, a: Array, b: Array) -> Array:
    """Say whether a quotient leaves what reciprocal and Newton's steps get right.

    A divisor or dividend is no normal number, its reciprocal or the quotient is none, or the
    remainder would be too small.
    """
    top, bottom = (((x.view(np.uint32) >> 23) & 255).astype(np.int64) for x in (a, b))
    quotient = top - bottom
    safe = (bottom > 0) & (bottom < 253) & (top > 24) & (top < 255)
    return ~(safe & (quotient > -125) & (quotient < 126))


PHASE_STEPS = 2.0**25  # of a turn: of smaller angles and differences nothing is left (measured)


def _phase(turns: Array) -> Array:
    return np.trunc(np.fmod(np.abs(turns), 1.0) * PHASE_STEPS) / PHASE_STEPS


def _sine_of_phase(phase: Array) -> Array:
    half_turns = 2 * phase
    return np.where(half_turns == np.rint(half_turns), 0.0, np.sin(np.pi * half_turns))


def _sine(turns: Array) -> Array:
    size = _sine_of_phase(_phase(turns))
    return np.where(np.signbit(turns), np.negative(size), size)


def _cosine(turns: Array) -> Array:
    return _sine_of_phase(_phase(turns) + 0.25)


SPECIAL_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": _sine,
    "COS": _cosine,
    "TANH": np.tanh,
}
KEEPS_SUBNORMALS = "TANH"


@row("MUFU", "xu", "f", "f", " ".join(SPECIAL_FUNCTIONS))
def special_function(form: Form, a: Array) -> Array:
    """A special function; angles in turns. The hardware's last bit may differ from this.

    Subnormal operands and results count as zero, but for TANH: compilers scale operands around it.
    """
    function = one_of(form, SPECIAL_FUNCTIONS)
    if KEEPS_SUBNORMALS in form.modifiers:
        return canonical(function(a.astype(F64)).astype(F32))
    return canonical(normal(function(normal(a).astype(F64)).astype(F32)))
