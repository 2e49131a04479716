"""Double precision, in pairs of registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.fused import fused_multiply_add
from gpusim.isa import Array
from gpusim.sass.form import Form
from gpusim.sass.mnemonics.floating import (
    COMPARES,
    ORDERED,
    ROUNDINGS,
    _to_odd,
    is_directed,
    least_or_most,
    two_sum,
)
from gpusim.sass.mnemonics.integer import COMBINATIONS, one_of
from gpusim.sass.table import row

F64 = np.float64
_SPLITTER = F64(2**27 + 1)


def _directed(form: Form, total: Array, error: Array) -> Array:
    """Round towards where the row says, given what rounding to nearest left out."""
    if "RM" in form.modifiers:
        return np.where(error < 0, np.nextafter(total, -np.inf), total)
    if "RP" in form.modifiers:
        return np.where(error > 0, np.nextafter(total, np.inf), total)
    if "RZ" in form.modifiers:
        return np.where(error * np.sign(total) < 0, np.nextafter(total, F64(0)), total)
    return total


def _halves(value: Array) -> tuple[Array, Array]:
    scaled = value * _SPLITTER
    high = scaled - (scaled - value)
    return high, value - high


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a product and what rounding it left out (Dekker)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, np.where(np.isfinite(error), error, 0.0)


@row("DADD", "fp64", "d", "dd", ROUNDINGS)
def add_doubles(form: Form, a: Array, b: Array) -> Array:
    return _directed(form, *two_sum(a, b)) if len(form.modifiers) else a + b


@row("DMUL", "fp64", "d", "dd", ROUNDINGS)
def multiply_doubles(form: Form, a: Array, b: Array) -> Array:
    return _directed(form, *_two_product(a, b)) if len(form.modifiers) else a * b


@row("DFMA", "fp64", "d", "ddd", ROUNDINGS)
def multiply_add_doubles(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding (Boldo and Melquiond, where it is directed)."""
    if not is_directed(form):
        return fused_multiply_add(a, b, c)
    product, left = _two_product(a, b)
    total, error = two_sum(product, c)
    rest, rest_error = two_sum(error, left)
    exact, last = two_sum(total, _to_odd(rest, rest_error))
    return np.where(np.isfinite(exact), _directed(form, exact, last), a * b + c)


@row("DMNMX", "fp64", "d", "ddp")
def minimum_maximum_doubles(form: Form, a: Array, b: Array, least: Array) -> Array:
    return least_or_most(a, b, least)


@row("DSETP", "fp64", "pp", "ddp", COMPARES)
def compare_doubles(form: Form, a: Array, b: Array, also: Array) -> Any:
    name = next(name for name in ORDERED if name in form.modifiers)
    result = ORDERED[name](a, b)
    combine = one_of(form, COMBINATIONS)
    return combine(result, also), combine(~result, also)


@row("DSETP.MIN DSETP.MAX", "fp64", "pp", "ddp", "AND")
def choose_double(form: Form, a: Array, b: Array, also: Array) -> Any:
    """Say whether the first of two is the one that is wanted, and whether both are no numbers.

    Of zeros the negative one is the lesser, as for DMNMX (what compilers make of it gives fmin).
    """
    less = (a < b) | ((a == b) & np.signbit(a))
    most = (a > b) | ((a == b) & ~np.signbit(a))
    first = (less if form.name == "DSETP.MIN" else most) | (np.isnan(b) & ~np.isnan(a))
    return first & also, np.isnan(a) & np.isnan(b)


@row("MUFU.RCP64H", "xu", "u", "D")
def reciprocal_high(form: Form, high: Array) -> Array:
    """The upper word of a double's reciprocal, from its upper word."""
    return _upper(1 / _from_upper(high))


@row("MUFU.RSQ64H", "xu", "u", "D")
def reciprocal_root_high(form: Form, high: Array) -> Array:
    """The upper word of a reciprocal square root, from a double's upper word."""
    return _upper(1 / np.sqrt(_from_upper(high)))


def _from_upper(high: Array) -> Array:
    return (high.astype(np.uint64) << np.uint64(32)).view(F64)


def _upper(value: Array) -> Array:
    return (value.view(np.uint64) >> np.uint64(32)).astype(np.uint32)
