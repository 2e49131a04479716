"""From one kind of number to another: rows for every pair of types, made from two tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpusim.isa.conversions import convert, saturated
from gpusim.isa.fused import exact_sum, sum_to_odd
from gpusim.isa.ops import OPS
from gpusim.isa.rounding import BRAIN, F32, F64, HALF, SINGLE, U32, Precision, rounded, towards
from gpusim.sass.form import ROUNDINGS, Form
from gpusim.sass.mnemonics.double import with_quiet_nans
from gpusim.sass.mnemonics.floating import flushed
from gpusim.sass.mnemonics.half import HALF_OPERAND
from gpusim.sass.table import add
from gpusim.typing import Array

ROUND_TO_WHOLE: Mapping[str, Callable[[Array], Array]] = {
    "TRUNC": np.trunc,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
}
DIRECTIONS = " ".join(ROUND_TO_WHOLE)


@dataclass(frozen=True)
class Whole:
    """A type of whole numbers: its names in mnemonics, and how registers hold it."""

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    code: str = "u"

    @property
    def is_part(self) -> bool:
        """Whether it is a byte or a half of a register."""
        return self.dtype.itemsize < 4


WHOLES = (
    Whole((".U8",), np.dtype(np.uint8)),
    Whole((".S8",), np.dtype(np.int8)),
    Whole((".U16",), np.dtype(np.uint16)),
    Whole((".S16",), np.dtype(np.int16)),
    Whole((".U32",), np.dtype(np.uint32)),
    Whole(("", ".S32"), np.dtype(np.int32), "i"),
    Whole((".U64",), np.dtype(np.uint64), "U"),
    Whole((".S64",), np.dtype(np.int64), "I"),
)


@dataclass(frozen=True)
class Real:
    """A type of floating-point numbers; `precision` is None for double precision."""

    name: str
    code: str
    precision: Precision | None

    @property
    def result(self) -> str:
        """The code of a result."""
        return "u" if self.code == "r" else self.code

    @property
    def operand(self) -> Mapping[str, str]:
        """The signs and suffixes of an operand that are the row's to look at."""
        return HALF_OPERAND if self.code == "r" else {}

    def exact(self, form: Form, a: Array) -> Array:
        """Return an operand as float64."""
        if self.precision is None:
            return a
        if self.precision is SINGLE:
            return flushed(form, a).astype(F64)
        bits = _part(form, a, np.dtype(np.uint16)).astype(U32)
        return form.signs[0].of(self.precision.value(bits))

    def given(self, form: Form, exact: Array) -> Array:
        """Return the registers of exact results, rounded."""
        if self.precision is None:
            return with_quiet_nans(exact)
        bits = rounded(exact, self.precision, form.direction)
        return flushed(form, bits.view(F32)) if self.precision is SINGLE else bits


SINGLES = Real(".F32", "f", SINGLE)
DOUBLES = Real(".F64", "d", None)
HALVES = Real(".F16", "r", HALF)
BRAINS = Real(".BF16", "r", BRAIN)
REALS = (SINGLES, DOUBLES, HALVES, BRAINS)


def _part(form: Form, a: Array, dtype: np.dtype[Any]) -> Array:
    """Return the byte or half of a register that its suffix names."""
    place = next((int(s[1]) for s in form.signs[0].suffixes if s[:1] in "BH"), 0)
    bits = dtype.itemsize * 8
    return (a >> U32(bits * place)).astype(f"u{dtype.itemsize}").view(dtype)


def _extended(whole: Array) -> Array:
    """Return whole numbers as registers hold them, with the sign of 8 and 16 bits extended."""
    return whole if whole.dtype.itemsize >= 4 else whole.astype(np.int32).view(U32)


def _rounded_to_whole(form: Form, value: Array) -> Array:
    name = next((name for name in ROUND_TO_WHOLE if name in form.modifiers), None)
    return np.rint(value) if name is None else ROUND_TO_WHOLE[name](value)


def _saturated(form: Form, whole: Array, dtype: np.dtype[Any]) -> Array:
    """Return the nearest number of a type; a NaN gives 0 with NTZ, else the sign bit alone."""
    if "NTZ" in form.modifiers:
        return saturated(whole, dtype, dtype.type(0))
    sign = np.array(1 << dtype.itemsize * 8 - 1, dtype=f"u{dtype.itemsize}").view(dtype)
    return saturated(whole, dtype, sign)


def _to_whole(form: Form, a: Array, real: Real, dtype: np.dtype[Any]) -> Array:
    return _extended(_saturated(form, _rounded_to_whole(form, real.exact(form, a)), dtype))


def _to_real(form: Form, a: Array, kind: Whole, real: Real) -> Array:
    """Round whole numbers once: 64 bits are the exact sum of their halves."""
    whole = _part(form, a, kind.dtype) if kind.is_part else a
    if not form.direction and real in (SINGLES, DOUBLES):
        return convert(whole, np.dtype(F32 if real is SINGLES else F64))
    low = whole & whole.dtype.type(0xFFFFFFFF) if kind.dtype.itemsize > 4 else whole
    parts = (whole - low).astype(F64), low.astype(F64)
    if real is DOUBLES:
        return towards(form.direction, *exact_sum(*parts))
    return real.given(form, sum_to_odd(*parts))


def _to_other(form: Form, a: Array, real: Real, other: Real) -> Array:
    """Round to another precision; a NaN keeps its sign and first bits (measured)."""
    given = other.given(form, real.exact(form, a))
    if real is not DOUBLES or other.precision is None:
        return given
    none = np.isnan(a)
    if not np.count_nonzero(none):
        return given
    bits = np.where(none, other.precision.nan_of(a), given.view(U32))
    return bits.view(given.dtype)


def _to_whole_real(form: Form, a: Array, real: Real) -> Array:
    return real.given(form, _rounded_to_whole(form, real.exact(form, a)))


def _pack_bytes(form: Form, a: Array, b: Array, rest: Array) -> Array:
    """Round two numbers to bytes, the second the lower one, above the old lower half."""
    upper, lower = (_to_whole(form, value, SINGLES, np.dtype(np.uint8)) for value in (a, b))
    return np.asarray((rest << U32(16)) | (upper << U32(8)) | lower)


def _clamped(a: Array, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    return np.clip(a, info.min, info.max)


def _pack_saturated(form: Form, a: Array, b: Array, rest: Array, dtype: np.dtype[Any]) -> Array:
    """Saturate two numbers, the second the lower one, above the old lower half."""
    bits = U32(dtype.itemsize * 8)
    mask = U32((1 << int(bits)) - 1)
    upper, lower = (_clamped(value, dtype).view(U32) & mask for value in (a, b))
    above = rest << U32(16) if dtype.itemsize == 1 else U32(0)
    return np.asarray(above | (upper << bits) | lower)


def _add_conversions(kind: Whole, real: Real) -> None:
    shown = "" if real is SINGLES else real.name
    whole = f"{DIRECTIONS} NTZ {_flush(real)}"
    result = "u" if kind.is_part else kind.code
    to_whole = partial(_to_whole, real=real, dtype=kind.dtype)
    to_real = partial(_to_real, kind=kind, real=real)
    parts = {1: "B0 B1 B2 B3", 2: "H0 H1"}.get(kind.dtype.itemsize, "")
    has_uniform = real is SINGLES and kind.dtype.itemsize == 4
    for name in kind.names:
        add(
            _names(f"F2I{name}{shown}", has_uniform),
            OPS["F2I"],
            result,
            real.code,
            whole,
            evaluate=to_whole,
            **real.operand,
        )
        add(
            _names(f"I2F{shown}{name}", has_uniform), OPS["I2F"], real.result, kind.code, ROUNDINGS,
            evaluate=to_real, suffixes=parts,
        )  # fmt: skip
        if has_uniform:
            add(_names(f"I2FP.F32{name}", True), "alu", "f", kind.code, ROUNDINGS, evaluate=to_real)


def _names(name: str, has_uniform: bool) -> str:
    """Return a mnemonic, and that of the uniform datapath where there is one."""
    return f"{name} U{name}" if has_uniform else name


def _add_between(real: Real, other: Real) -> None:
    if other is real:
        shown = "" if real is SINGLES else real.name
        names, modifiers = _names(f"FRND{shown}", real is SINGLES), f"{DIRECTIONS} {_flush(real)}"
        evaluate = partial(_to_whole_real, real=real)
    else:
        names, modifiers = f"F2F{other.name}{real.name}", f"{ROUNDINGS} {_flush(real, other)}"
        evaluate = partial(_to_other, real=real, other=other)
    add(names, OPS["F2F"], other.result, real.code, modifiers, evaluate=evaluate, **real.operand)


def _flush(*reals: Real) -> str:
    return "FTZ" if SINGLES in reals else ""


for _real in REALS:
    for _kind in WHOLES:
        _add_conversions(_kind, _real)
    for _other in REALS:
        _add_between(_real, _other)
for _kind in WHOLES:
    if _kind.is_part:
        [_name] = _kind.names
        _pack = partial(_pack_saturated, dtype=_kind.dtype)
        add(f"I2IP{_name}.S32.SAT", "xu", "u", "iiu", evaluate=_pack)
add("F2IP.U8.F32", "xu", "u", "ffu", f"{DIRECTIONS} NTZ FTZ", evaluate=_pack_bytes)
