"""Reductions of bulk copies (`cp.reduce.async.bulk`): elements combined with what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpusim.typing import Array

_TYPES = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32,
    "b64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16,
}  # fmt: skip


def _increased(before: Array, most: Array) -> Array:
    return np.where(before >= most, np.uint32(0), before + np.uint32(1))


def _decreased(before: Array, most: Array) -> Array:
    return np.where((before == 0) | (before > most), most, before - np.uint32(1))


_OPERATIONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": _increased,
    "dec": _decreased,
}


def combined(reduction: str, before: Array, given: Array) -> Array:
    """Return the bytes of elements after a reduction, such as "add.f32"."""
    operation, kind = reduction.split(".")
    combine, dtype = _OPERATIONS[operation], _TYPES[kind]
    old, new = (one.view(dtype) for one in (before, given))
    if kind != "bf16":
        return np.asarray(combine(old, new)).astype(dtype, copy=False).view(np.uint8)
    wide = (one.astype(np.uint32) << np.uint32(16) for one in (old, new))
    result = combine(*(one.view(np.float32) for one in wide))
    return _rounded(np.asarray(result, np.float32).view(np.uint32)).view(np.uint8)


def _rounded(bits: Array) -> Array:
    """Return single precision as bf16, rounded to nearest even."""
    even = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    is_nan = bits & np.uint32(0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, np.uint32(0x7FFF), even >> np.uint32(16)).astype(np.uint16)
