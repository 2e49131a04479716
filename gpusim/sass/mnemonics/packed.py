"""Packed whole numbers: two of 16 bits or four of 8 in a register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.sass.form import Form
from gpusim.sass.table import row
from gpusim.typing import Array

U32 = np.uint32
SIGNED = "S16x2"


def _parts(a: Array, bits: int, signed: bool) -> list[Array]:
    """Return the numbers of `bits` bits in each register, the lowest first."""
    unsigned = np.dtype(f"u{bits // 8}")
    parts = [(a >> U32(place)).astype(unsigned) for place in range(0, 32, bits)]
    return [part.view(np.dtype(f"i{bits // 8}")) for part in parts] if signed else parts


def _packed(parts: list[Array]) -> Array:
    """Return numbers as one register each, the first in its lowest bits."""
    bits = 32 // len(parts)
    unsigned = np.dtype(f"u{bits // 8}")
    word = parts[0].view(unsigned).astype(U32)
    for place, part in enumerate(parts[1:], 1):
        word = word | (part.view(unsigned).astype(U32) << U32(bits * place))
    return word


def _halves(form: Form, *words: Array) -> list[tuple[Array, ...]]:
    """Return the lower halves of some registers, and the upper ones."""
    of_each = [_parts(word, 16, SIGNED in form.modifiers) for word in words]
    return list(zip(*of_each, strict=True))


def _bounded(form: Form, least: Array, first: Array, *others: Array) -> Array:
    """Return the lowest or the highest of some numbers, with RELU no less than zero."""
    low = high = first
    for other in others:
        low, high = np.minimum(low, other), np.maximum(high, other)
    result = np.where(least, low, high)
    return np.maximum(result, result.dtype.type(0)) if "RELU" in form.modifiers else result


@row("VIADD.16x2", "fma", "u", "rr", signs="- -")
def add_halves(form: Form, a: Array, b: Array) -> Array:
    totals = []
    for x, y in _halves(form, a, b):
        first, second = (
            np.negative(part) if signs.negated else part
            for part, signs in zip((x, y), form.signs, strict=True)
        )
        totals.append(first + second)
    return _packed(totals)


@row("VIADD.U8x4", "fma", "u", "rr", signs="- -")
def add_bytes(form: Form, a: Array, b: Array) -> Array:
    parts = [
        [np.negative(part) if signs.negated else part for part in _parts(word, 8, False)]
        for word, signs in zip((a, b), form.signs, strict=True)
    ]
    return _packed([x + y for x, y in zip(*parts, strict=True)])


@row("VIMNMX.S8x4 VIMNMX.U8x4", "alu", "u", "uup", "RELU")
def minimum_maximum_of_bytes(form: Form, a: Array, b: Array, least: Array) -> Array:
    signed = form.name.endswith("S8x4")
    pairs = zip(_parts(a, 8, signed), _parts(b, 8, signed), strict=True)
    return _packed([_bounded(form, least, x, y) for x, y in pairs])


@row("VIMNMX.S16x2 VIMNMX.U16x2", "alu", "u|pp", "uup", "RELU")
def minimum_maximum_of_halves(form: Form, a: Array, b: Array, least: Array) -> Any:
    """Choose for each half; a predicate each says whether it is the first operand's."""
    halves = _halves(form, a, b)
    chosen = [_bounded(form, least, x, y) for x, y in halves]
    if len(form.results) == 1:
        return _packed(chosen)
    low, high = (result == x for result, (x, _) in zip(chosen, halves, strict=True))
    return _packed(chosen), low, high


@row("VIMNMX3.S16x2 VIMNMX3.U16x2", "alu", "u", "uuup", "RELU")
def minimum_maximum_of_three_halves(
    form: Form, a: Array, b: Array, c: Array, least: Array
) -> Array:
    return _packed([_bounded(form, least, *three) for three in _halves(form, a, b, c)])


@row("VIADDMNMX.S16x2 VIADDMNMX.U16x2", "alu", "u", "uuup", "RELU")
def sum_minimum_maximum_of_halves(form: Form, a: Array, b: Array, c: Array, least: Array) -> Array:
    return _packed([_bounded(form, least, x + y, z) for x, y, z in _halves(form, a, b, c)])


def _distances(a: Array, b: Array) -> list[Array]:
    """Return how far the bytes of two registers are apart."""
    pairs = zip(_parts(a, 8, False), _parts(b, 8, False), strict=True)
    return [np.maximum(x, y) - np.minimum(x, y) for x, y in pairs]


@row("VABSDIFF4.U8", "alu", "u", "uuu")
def absolute_differences_of_bytes(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Give a distance for each byte; none is left to the third operand (PTX ISA, vabsdiff4)."""
    return _packed(_distances(a, b))


@row("VABSDIFF4.U8.ACC", "alu", "u", "uuu")
def sum_of_absolute_differences(form: Form, a: Array, b: Array, c: Array) -> Array:
    return np.asarray(sum(part.astype(U32) for part in _distances(a, b)) + c)


def _names(name: str, first: str, second: str) -> str:
    """Return a mnemonic with all pairs of types."""
    return " ".join(f"{name}.{a}.{b}" for a in first.split() for b in second.split())


def _dot(form: Form, numbers: Callable[[Array, bool], list[Array]], a: Array, b: Array) -> Array:
    """Return the sum of the products of some numbers and bytes, of the types that the row names."""
    *_, first, second = form.name.split(".")
    start = 2 if "HI" in form.modifiers else 0
    pairs = zip(numbers(a, first[0] == "S"), _parts(b, 8, second[0] == "S")[start:], strict=False)
    return np.asarray(sum(x.astype(np.int64) * y.astype(np.int64) for x, y in pairs)).astype(U32)


@row(_names("IDP.4A", "S8 U8", "S8 U8"), "imad", "u", "uuu")
def dot_of_bytes(form: Form, a: Array, b: Array, c: Array) -> Array:
    return _dot(form, lambda word, signed: _parts(word, 8, signed), a, b) + c


@row(_names("IDP.2A.LO", "S16 U16", "S8 U8"), "imad", "u", "uuu")
@row(_names("IDP.2A.HI", "S16 U16", "S8 U8"), "imad", "u", "uuu")
def dot_of_halves(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Add up the products of two halves with the two lower, or upper, bytes of another word."""
    return _dot(form, lambda word, signed: _parts(word, 16, signed), a, b) + c
