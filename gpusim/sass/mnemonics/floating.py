"""Single precision: sums, products, comparisons, and the special functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.fused import fused_multiply_add
from gpusim.isa import Array
from gpusim.sass.form import Form
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.table import row

F32, F64 = np.float32, np.float64
ROUNDINGS = "RN RM RP RZ"
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
    if "FTZ" not in form.modifiers:
        return value
    return np.where(np.abs(value) < LEAST_NORMAL, np.copysign(F32(0), value), value)


def _to_odd(total: Array, error: Array) -> Array:
    """Return sums rounded to odd, given what rounding left out: a second rounding is then right."""
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    return np.where(inexact, bits + toward, bits).view(F64)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum and what rounding it left out, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def narrowed(form: Form, total: Array, error: Array, kind: type[np.floating[Any]] = F32) -> Array:
    """Round what is exact as `total` plus `error` to single precision or half, as the row says."""
    exact = _to_odd(total, error)
    near = exact.astype(kind)
    back = near.astype(F64)
    if "RM" in form.modifiers:
        return np.where(back > exact, np.nextafter(near, kind(-np.inf)), near)
    if "RP" in form.modifiers:
        return np.where(back < exact, np.nextafter(near, kind(np.inf)), near)
    if "RZ" in form.modifiers:
        return np.where(np.abs(back) > np.abs(exact), np.nextafter(near, kind(0)), near)
    return near


def _finished(form: Form, value: Array) -> Array:
    value = flushed(form, value)
    if "SAT" in form.modifiers:
        return np.where(value > 0, np.minimum(value, F32(1)), F32(0))
    return value


def is_directed(form: Form) -> bool:
    """Return whether a row rounds down, up or towards zero rather than to nearest."""
    return bool(form.modifiers & {"RM", "RP", "RZ"})


@row("FADD", "fma", "f", "ff", f"FTZ SAT {ROUNDINGS}")
def add_floats(form: Form, a: Array, b: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    if is_directed(form):
        total, error = two_sum(a.astype(F64), b.astype(F64))
        return _finished(form, narrowed(form, total, error))
    return _finished(form, a + b)


# What a product is multiplied by before it is rounded.
SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}


@row("FMUL", "fma", "f", "ff", f"FTZ SAT {ROUNDINGS} {' '.join(SCALES)}")
def multiply_floats(form: Form, a: Array, b: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    scaled = form.modifiers & SCALES.keys()
    if scaled or is_directed(form):
        product = a.astype(F64) * b.astype(F64) * F64(SCALES[min(scaled)] if scaled else 1)
        return _finished(form, narrowed(form, product, np.zeros_like(product)))
    return _finished(form, a * b)


@row("FFMA", "fma", "f", "fff", f"FTZ SAT {ROUNDINGS}")
def multiply_add_floats(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding."""
    a, b, c = flushed(form, a), flushed(form, b), flushed(form, c)
    if not is_directed(form):
        return _finished(form, fused_multiply_add(a, b, c))
    product = a.astype(F64) * b.astype(F64)
    return _finished(form, narrowed(form, *two_sum(product, c.astype(F64))))


def least_or_most(a: Array, b: Array, least: Array) -> Array:
    """Return the lesser, or the greater, of two; a NaN loses, and -0 is less than +0."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    low = np.where(a == b, (a.view(bits) | b.view(bits)).view(a.dtype), np.fmin(a, b))
    high = np.where(a == b, (a.view(bits) & b.view(bits)).view(a.dtype), np.fmax(a, b))
    return np.where(least, low, high)


@row("FMNMX", "alu", "f", "ffp", "FTZ")
def minimum_maximum_floats(form: Form, a: Array, b: Array, least: Array) -> Array:
    return least_or_most(flushed(form, a), flushed(form, b), least)


@row("FMNMX.NAN", "alu", "f", "ffp", "FTZ")
def minimum_maximum_or_nan(form: Form, a: Array, b: Array, least: Array) -> Array:
    a, b = flushed(form, a), flushed(form, b)
    return np.where(np.isnan(a) | np.isnan(b), F32(np.nan), least_or_most(a, b, least))


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


def _quiet(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return function


SPECIAL_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(2 * np.pi * x),
    "COS": lambda x: np.cos(2 * np.pi * x),
    "TANH": np.tanh,
}


@row("MUFU", "xu", "f", "f", " ".join(SPECIAL_FUNCTIONS))
def special_function(form: Form, a: Array) -> Array:
    """A special function; angles in turns. The hardware's last bit may differ from this."""
    return np.asarray(one_of(form, SPECIAL_FUNCTIONS)(a.astype(F64)).astype(F32))
