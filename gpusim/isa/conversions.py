"""Conversions between types of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa.rounding import SINGLE, rounded
from gpusim.typing import Array, DType


def convert(value: Array, dtype: DType) -> Array:
    """Convert as C does on CUDA: floats to integers truncate and saturate, NaN gives 0."""
    if dtype.kind in "iu" and value.dtype.kind == "f":
        return saturated(np.trunc(value.astype(np.float64)), dtype, dtype.type(0))
    return value.astype(dtype)


def saturated(whole: Array, dtype: DType, of_nan: Any) -> Array:
    """Return the nearest integer of a type, from whole numbers in float64; `of_nan` for a NaN."""
    info, kind = np.iinfo(dtype), dtype.type
    low, high, none = whole <= float(info.min), whole >= float(info.max), np.isnan(whole)
    inside = np.where(low | high | none, 0.0, whole).astype(dtype)
    made = np.where(low, kind(info.min), np.where(high, kind(info.max), inside))
    return np.where(none, of_nan, made)


def to_single_rounded_up(value: Array) -> Array:
    """Return 32-bit integers as float32, rounded up."""
    return rounded(value.astype(np.float64), SINGLE, "RP").view(np.float32)


def truncate_single_bits(bits: Array) -> Array:
    """Return as uint32 the whole part of a float32, given by its bits."""
    return convert(bits.view(np.float32), np.dtype(np.uint32))
