"""Double precision, in pairs of registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.comparisons import UNORDERED, least_or_most
from gpusim.isa.functions import LIBRARY, reciprocal
from gpusim.isa.fused import fused_multiply_add, left_out
from gpusim.isa.integers import signed_sum
from gpusim.isa.ops import OPS
from gpusim.isa.rounding import F64, SINGLE, towards
from gpusim.sass.form import ROUNDINGS, Form
from gpusim.sass.mnemonics.floating import COMPARES
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.table import row
from gpusim.typing import Array

NO_NUMBER = np.array(0xFFF8000000000000, dtype=np.uint64).view(F64)  # of an invalid operation
LEAST_NORMAL = np.finfo(F64).tiny
_QUIET_BIT = np.uint64(1 << 51)
_ONE, _ZERO = np.ones(1), np.zeros(1)


def _with_nans(result: Array, *operands: Array) -> Array:
    """Give NaN its bits: the last NaN among the operands, quiet, else NO_NUMBER.

    Measured on an H200; of three operands the second factor comes last, the first one first.
    """
    none = np.isnan(result)
    if not np.count_nonzero(none):
        return result
    made: Array = NO_NUMBER
    for operand in operands:
        made = np.where(np.isnan(operand), _quiet(operand), made)
    return np.where(none, made, result)


def _quiet(value: Array) -> Array:
    return (value.view(np.uint64) | _QUIET_BIT).view(F64)


def with_quiet_nans(value: Array) -> Array:
    """Return doubles with quiet NaN for signalling ones."""
    none = np.isnan(value)
    return np.where(none, _quiet(value), value) if np.count_nonzero(none) else value


def _directed(form: Form, near: Array, a: Array, b: Array, c: Array) -> Array:
    """Round a * b + c in the row's direction; `near` is the nearest double."""
    if not form.direction:
        return near
    side = left_out(near, a, b, c)
    if form.direction == "RM":
        negative = np.signbit(a) ^ np.signbit(b) | np.signbit(c)
        near = np.where((near == 0) & (side == 0) & negative, -0.0, near)
    return towards(form.direction, near, side)


@row("DADD", OPS["DADD"], "d", "dd", ROUNDINGS)
def add_doubles(form: Form, a: Array, b: Array) -> Array:
    return _with_nans(_directed(form, signed_sum(None, a, b), a, _ONE, b), a, b)


@row("DMUL", OPS["DMUL"], "d", "dd", ROUNDINGS)
def multiply_doubles(form: Form, a: Array, b: Array) -> Array:
    product = a * b
    return _with_nans(_directed(form, product, a, b, np.copysign(_ZERO, product)), a, b)


@row("DFMA", OPS["DFMA"], "d", "ddd", ROUNDINGS)
def multiply_add_doubles(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding."""
    return _with_nans(_directed(form, fused_multiply_add(a, b, c), a, b, c), a, c, b)


@row("DMNMX", OPS["DMNMX"], "d", "ddp")
def minimum_maximum_doubles(form: Form, a: Array, b: Array, least: Array) -> Array:
    return _with_nans(least_or_most(least, a, b), a, b)


@row("DSETP", OPS["DSETP"], "pp", "ddp", COMPARES)
def compare_doubles(form: Form, a: Array, b: Array, also: Array) -> Any:
    name = next(name for name in UNORDERED if name in form.modifiers)
    result = UNORDERED[name](a, b)
    combine = one_of(form, COMBINATIONS)
    return combine(result, also), combine(~result, also)


@row("DSETP.MIN DSETP.MAX", OPS["DSETP"], "pp", "ddp", "AND")
def choose_double(form: Form, a: Array, b: Array, also: Array) -> Any:
    """Return whether the first of two is selected, and whether both are NaN.

    Of zeros the negative one is the lesser, as for DMNMX (compilers make fmin of it).
    """
    less = (a < b) | ((a == b) & np.signbit(a))
    most = (a > b) | ((a == b) & ~np.signbit(a))
    first = (less if form.name == "DSETP.MIN" else most) | (np.isnan(b) & ~np.isnan(a))
    return first & also, np.isnan(a) & np.isnan(b)


@row("MUFU.RCP64H", OPS["MUFU"], "u", "D")
def reciprocal_high(form: Form, high: Array) -> Array:
    """The upper word of a double's reciprocal, from its upper word."""
    return _upper(reciprocal(_from_upper(high)))


@row("MUFU.RSQ64H", OPS["MUFU"], "u", "D")
def reciprocal_root_high(form: Form, high: Array) -> Array:
    """The upper word of a reciprocal square root, from a double's upper word."""
    return _upper(LIBRARY["rsqrt"](_from_upper(high)))


def _normal(value: Array) -> Array:
    return np.where(np.abs(value) < LEAST_NORMAL, np.copysign(F64(0), value), value)


def _from_upper(high: Array) -> Array:
    return _normal((high.astype(np.uint64) << np.uint64(32)).view(F64))


def _upper(value: Array) -> Array:
    bits = (_normal(value).view(np.uint64) >> np.uint64(32)).astype(np.uint32)
    return np.where(np.isnan(value), np.uint32(SINGLE.nan), bits)
