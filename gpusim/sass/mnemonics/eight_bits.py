"""Floating-point numbers of eight bits, E4M3 and E5M2, two in a half of a register.

E4M3 has no infinity and one NaN of each sign; E5M2 is the upper half of half precision
(Micikevicius et al., "FP8 Formats for Deep Learning", 2022). Conversions to them saturate at the
largest finite number, and have one NaN.
"""

from __future__ import annotations

import numpy as np

from gpusim.isa.rounding import F16, F64, HALF, U16, U32, rounded
from gpusim.sass.form import Form
from gpusim.sass.table import row
from gpusim.typing import Array

NAN = U32(0x7F)
NARROW = ["SATFINITE.E4M3", "SATFINITE.E5M2"]


def _magnitudes(fraction: int, finite: int) -> Array:
    """Return the finite numbers that are not negative, in the order of their bits."""
    bits = np.arange(finite + 1)
    exponent, rest = bits >> fraction, bits & (1 << fraction) - 1
    bias = (1 << 6 - fraction) - 1
    significand = rest + np.where(exponent > 0, 1 << fraction, 0)
    return np.asarray(np.ldexp(significand.astype(F64), np.maximum(exponent, 1) - bias - fraction))


_OF = {"E4M3": _magnitudes(3, 0x7E), "E5M2": _magnitudes(2, 0x7B)}


def _bits(form: Form, value: Array) -> Array:
    """Return the nearest numbers of eight bits, of two as near the one with an even last bit."""
    magnitudes = next(held for name, held in _OF.items() if name in form.modifiers)
    middles = (magnitudes[1:] + magnitudes[:-1]) / 2
    exact = value.astype(F64)
    if "RELU" in form.modifiers:
        exact = np.where(exact <= 0, 0.0, exact)
    size = np.abs(exact)
    lower, upper = (np.searchsorted(middles, size, side) for side in ("left", "right"))
    found = np.where(lower & 1, upper, lower).astype(U32)
    signed = found | (np.signbit(exact).astype(U32) << U32(7))
    return np.asarray(np.where(np.isnan(exact), NAN, signed))


def _beside(low: Array, high: Array, rest: Array) -> Array:
    return np.asarray(low | (high << U32(8)) | (rest << U32(16)))


@row(" ".join(f"F2FP.{one}.F32.PACK_AB_MERGE_C" for one in NARROW), "alu", "u", "ffu", "RELU")
def pack_two_and_two(form: Form, a: Array, b: Array, rest: Array) -> Array:
    """Round two numbers of single precision, the first into the upper byte, below two others."""
    return _beside(_bits(form, b), _bits(form, a), rest)


@row(" ".join(f"F2FP.{one}.F16.UNPACK_B_MERGE_C" for one in NARROW), "alu", "u", "uu", "RELU")
def narrow_halves_below_two(form: Form, a: Array, rest: Array) -> Array:
    """Round both numbers of half precision in a register, below two others."""
    low, high = (HALF.value(half) for half in (a, a >> U32(16)))
    return _beside(_bits(form, low), _bits(form, high), rest)


@row("F2FP.F16.E4M3.UNPACK_B F2FP.F16.E5M2.UNPACK_B", "alu", "u", "u", "RELU", suffixes="H0 H1")
def halves_of_bytes(form: Form, a: Array) -> Array:
    """Return two bytes' numbers in half precision, without rounding: the lowest, or those of H1."""
    a = a >> U32(16) if "H1" in form.signs[0].suffixes else a
    low, high = (_half(form, byte) for byte in (a & U32(0xFF), a >> U32(8) & U32(0xFF)))
    return np.asarray(low | (high << U32(16)))


def _half(form: Form, byte: Array) -> Array:
    if "E5M2" in form.modifiers:
        value = (byte << U32(8)).astype(U16).view(F16).astype(F64)
    else:
        magnitudes = np.append(_OF["E4M3"], np.nan)[byte & U32(0x7F)]
        value = np.where(byte >> U32(7), -magnitudes, magnitudes)
    if "RELU" in form.modifiers:
        value = np.where(value <= 0, 0.0, value)
    return rounded(value, HALF, form.direction)
