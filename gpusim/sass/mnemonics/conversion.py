"""From one kind of number to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def _to_float(form: Form, a: Array) -> Array:
    """Round whole numbers of up to 64 bits to single precision."""
    near = a.astype(F64)
    if a.dtype.itemsize < 8:
        return narrowed(form, near, np.zeros_like(near))
    high = (a >> a.dtype.type(32)) << a.dtype.type(32)
    low = (a - high).astype(F64)
    total = high.astype(F64) + low
    return narrowed(form, total, low - (total - high.astype(F64)))


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


@row("I2F.U8", "xu", "f", "u", ROUNDED)
def byte_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 8).astype(F32)


@row("I2F.S8", "xu", "f", "u", ROUNDED)
def signed_byte_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 8).view(np.int8).astype(F32)


@row("I2F.U16", "xu", "f", "u", ROUNDED)
def short_to_float(form: Form, a: Array) -> Array:
    return _part(form, a, 16).astype(F32)


@row("I2F.S16", "xu", "f", "u", ROUNDED)
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
