"""From one kind of number to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.isa import Array
from gpusim.sass.form import Form
from gpusim.sass.mnemonics.floating import F32, F64, flushed, narrowed
from gpusim.sass.table import row

ROUND_TO_WHOLE: Mapping[str, Callable[[Array], Array]] = {
    "TRUNC": np.trunc,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
}
WHOLE = "TRUNC FLOOR CEIL NTZ FTZ"


def _whole(form: Form, value: Array) -> Array:
    name = next((name for name in ROUND_TO_WHOLE if name in form.modifiers), None)
    return np.rint(value) if name is None else ROUND_TO_WHOLE[name](value)


def _saturated(form: Form, value: Array, kind: type[np.generic]) -> Array:
    """Return the nearest whole number that the type holds.

    What is no number gives 0 where the row says so (NTZ), else the sign bit alone.
    """
    info = np.iinfo(kind)  # type: ignore[type-var]
    whole = _whole(form, value.astype(F64))
    low, high = whole <= float(info.min), whole >= float(info.max)
    inside = np.where(low | high | np.isnan(whole), 0.0, whole).astype(kind)
    made = np.where(low, _of(kind, info.min), np.where(high, _of(kind, info.max), inside))
    bits = np.dtype(kind).itemsize * 8
    none = 0 if "NTZ" in form.modifiers else 1 << (bits - 1)
    lost = np.array(none, dtype=f"u{bits // 8}").view(kind)
    return np.where(np.isnan(whole), lost, made)


@row("F2I", "xu", "u", "f", WHOLE)
def float_to_int(form: Form, a: Array) -> Array:
    return _saturated(form, flushed(form, a), np.int32).view(np.uint32)


@row("F2I.U32", "xu", "u", "f", WHOLE)
def float_to_unsigned(form: Form, a: Array) -> Array:
    return _saturated(form, flushed(form, a), np.uint32)


@row("F2I.S64", "xu", "U", "f", WHOLE)
def float_to_long(form: Form, a: Array) -> Array:
    return _saturated(form, flushed(form, a), np.int64).view(np.uint64)


@row("F2I.U64", "xu", "U", "f", WHOLE)
def float_to_unsigned_long(form: Form, a: Array) -> Array:
    return _saturated(form, flushed(form, a), np.uint64)


@row("F2I.F64", "xu", "u", "d", WHOLE)
def double_to_int(form: Form, a: Array) -> Array:
    return _saturated(form, a, np.int32).view(np.uint32)


@row("F2I.U32.F64", "xu", "u", "d", WHOLE)
def double_to_unsigned(form: Form, a: Array) -> Array:
    return _saturated(form, a, np.uint32)


@row("F2I.S64.F64", "xu", "U", "d", WHOLE)
def double_to_long(form: Form, a: Array) -> Array:
    return _saturated(form, a, np.int64).view(np.uint64)


@row("F2I.U64.F64", "xu", "U", "d", WHOLE)
def double_to_unsigned_long(form: Form, a: Array) -> Array:
    return _saturated(form, a, np.uint64)


def _of(kind: type[np.generic], value: int) -> Array:
    return np.array(value, dtype=kind)


ROUNDED = "RN RM RP RZ"
# Suffixes of operands that lie in a byte or in a half of a register.
BYTES, HALVES = "B0 B1 B2 B3", "H0 H1"


def _to_float(form: Form, a: Array, kind: type[np.floating[Any]] = F32) -> Array:
    """Round whole numbers of up to 64 bits to single precision or half."""
    near = a.astype(F64)
    if a.dtype.itemsize < 8:
        return narrowed(form, near, np.zeros_like(near), kind)
    high = (a >> a.dtype.type(32)) << a.dtype.type(32)
    low = (a - high).astype(F64)
    total = high.astype(F64) + low
    return narrowed(form, total, low - (total - high.astype(F64)), kind)


@row("I2FP.F32", "alu", "f", "x", f"U32 S32 {ROUNDED}")
@row("I2F", "xu", "f", "x", f"U32 S32 {ROUNDED}")
def int_to_float(form: Form, a: Array) -> Array:
    return _to_float(form, a)


@row("I2F.S64", "xu", "f", "I", ROUNDED)
def long_to_float(form: Form, a: Array) -> Array:
    return _to_float(form, a)


@row("I2F.U64", "xu", "f", "U", ROUNDED)
def unsigned_long_to_float(form: Form, a: Array) -> Array:
    return _to_float(form, a)


def _part(form: Form, a: Array, bits: int) -> Array:
    """Return the byte or half of a register that its suffix names."""
    place = next((int(s[1]) for s in form.signs[0].suffixes if s[:1] in "BH"), 0)
    return (a >> np.uint32(bits * place)).astype(f"u{bits // 8}")


@row("I2F.U8", "xu", "f", "u", ROUNDED, suffixes=BYTES)
def byte_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 8).astype(F32)


@row("I2F.S8", "xu", "f", "u", ROUNDED, suffixes=BYTES)
def signed_byte_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 8).view(np.int8).astype(F32)


@row("I2F.U16", "xu", "f", "u", ROUNDED, suffixes=HALVES)
def short_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 16).astype(F32)


@row("I2F.S16", "xu", "f", "u", ROUNDED, suffixes=HALVES)
def signed_short_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 16).view(np.int16).astype(F32)


@row("I2F.F64", "xu", "d", "x", "U32 S32 RN")
def int_to_double(form: Form, a: Array) -> Array:
    return a.astype(F64)


@row("I2F.F64.S64", "xu", "d", "I", "RN")
def long_to_double(form: Form, a: Array) -> Array:
    return a.astype(F64)


@row("I2F.F64.U64", "xu", "d", "U", "RN")
def unsigned_long_to_double(form: Form, a: Array) -> Array:
    return a.astype(F64)


PARTS: Mapping[str, tuple[int, type[np.generic]]] = {
    "U8": (8, np.uint8), "S8": (8, np.int8), "U16": (16, np.uint16), "S16": (16, np.int16),
}  # fmt: skip


def _part_of(form: Form, a: Array) -> Array:
    bits, kind = next(part for name, part in PARTS.items() if name in form.modifiers)
    return _part(form, a, bits).view(kind)


@row("I2F.F64.U8 I2F.F64.S8", "xu", "d", "u", "RN", suffixes=BYTES)
@row("I2F.F64.U16 I2F.F64.S16", "xu", "d", "u", "RN", suffixes=HALVES)
def part_to_double(form: Form, a: Array) -> Array:
    return _part_of(form, a).astype(F64)


def _bits_of_half(value: Array) -> Array:
    return value.view(np.uint16).astype(np.uint32)


@row("I2F.F16", "xu", "u", "x", f"U32 S32 {ROUNDED}")
@row("I2F.F16.S64", "xu", "u", "I", ROUNDED)
@row("I2F.F16.U64", "xu", "u", "U", ROUNDED)
def int_to_half(form: Form, a: Array) -> Array:
    return _bits_of_half(_to_float(form, a, np.float16))


@row("I2F.F16.U8 I2F.F16.S8", "xu", "u", "u", ROUNDED, suffixes=BYTES)
@row("I2F.F16.U16 I2F.F16.S16", "xu", "u", "u", ROUNDED, suffixes=HALVES)
def part_to_half(form: Form, a: Array) -> Array:
    return _bits_of_half(_to_float(form, _part_of(form, a), np.float16))


@row("F2F.F16.F64", "xu", "u", "d", ROUNDED)
def double_to_half(form: Form, a: Array) -> Array:
    return _bits_of_half(narrowed(form, a, np.zeros_like(a), np.float16))


def _of_half(form: Form, a: Array) -> Array:
    return _part(form, a, 16).view(np.float16)


@row("F2I.F16", "xu", "u", "u", WHOLE, suffixes=HALVES)
def half_to_int(form: Form, a: Array) -> Array:
    return _saturated(form, _of_half(form, a), np.int32).view(np.uint32)


@row("F2I.U32.F16", "xu", "u", "u", WHOLE, suffixes=HALVES)
def half_to_unsigned(form: Form, a: Array) -> Array:
    return _saturated(form, _of_half(form, a), np.uint32)


@row("F2I.S16.F16", "xu", "u", "u", WHOLE, suffixes=HALVES)
def half_to_short(form: Form, a: Array) -> Array:
    return _saturated(form, _of_half(form, a), np.int16).astype(np.int32).view(np.uint32)


@row("F2I.U16.F16", "xu", "u", "u", WHOLE, suffixes=HALVES)
def half_to_unsigned_short(form: Form, a: Array) -> Array:
    return _saturated(form, _of_half(form, a), np.uint16).astype(np.uint32)


@row("F2I.S64.F16", "xu", "U", "u", WHOLE, suffixes=HALVES)
def half_to_long(form: Form, a: Array) -> Array:
    return _saturated(form, _of_half(form, a), np.int64).view(np.uint64)


@row("F2I.U64.F16", "xu", "U", "u", WHOLE, suffixes=HALVES)
def half_to_unsigned_long(form: Form, a: Array) -> Array:
    return _saturated(form, _of_half(form, a), np.uint64)


@row("FRND.F16", "xu", "u", "u", "TRUNC FLOOR CEIL", suffixes=HALVES)
def round_half(form: Form, a: Array) -> Array:
    return _bits_of_half(_whole(form, _of_half(form, a)))


@row("F2F.F64.F32", "xu", "d", "f", "FTZ")
def float_to_double(form: Form, a: Array) -> Array:
    return flushed(form, a).astype(F64)


@row("F2F.F32.F64", "xu", "f", "d", f"FTZ {ROUNDED}")
def double_to_float(form: Form, a: Array) -> Array:
    return flushed(form, narrowed(form, a, np.zeros_like(a)))


@row("FRND", "xu", "f", "f", WHOLE)
def round_float(form: Form, a: Array) -> Array:
    return _whole(form, flushed(form, a))


@row("FRND.F64", "xu", "d", "d", "TRUNC FLOOR CEIL")
def round_double(form: Form, a: Array) -> Array:
    return _whole(form, a)
