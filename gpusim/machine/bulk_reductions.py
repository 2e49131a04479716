"""Reductions of bulk copies (`cp.reduce.async.bulk`): elements combined with the old ones."""

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
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": _increased,
    "dec": _decreased,
}
# By type: the bits above which a number without its sign is no number, and the result in its place.
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}
_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def combined(reduction: str, before: Array, given: Array) -> Array:
    """Return the bytes of elements after a reduction, such as "add.f32", as an H200 leaves them."""
    operation, kind = reduction.split(".")
    if kind in _INFINITY:
        return _of_floats(operation, kind, before, given).view(np.uint8)
    old, new = (one.view(_TYPES[kind]) for one in (before, given))
    return np.asarray(_OPERATIONS[operation](old, new)).astype(old.dtype, copy=False).view(np.uint8)


def _of_floats(operation: str, kind: str, before: Array, given: Array) -> Array:
    bits = np.dtype(f"u{np.dtype(_TYPES[kind]).itemsize}")
    old, new = before.view(bits), given.view(bits)
    sign = bits.type(1 << 8 * bits.itemsize - 1)
    is_old_nan, is_new_nan = ((one & ~sign) > _INFINITY[kind] for one in (old, new))
    if operation == "add":
        return _added(kind, old, new, is_old_nan)
    # A negative zero is less than a positive one: the order of bits with the sign inverted.
    keys = [np.where(one & sign, ~one, one | sign) for one in (old, new)]
    is_old = is_new_nan | (_OPERATIONS[operation](*keys) == keys[0]) & ~is_old_nan
    found = np.where(is_old, old, new)
    return np.where(is_old_nan & is_new_nan, bits.type(_NAN[kind]), found)


def _added(kind: str, old: Array, new: Array, is_old_nan: Array) -> Array:
    """Return sums; in double precision a NaN that was there remains."""
    if kind == "bf16":
        wide = ((one.astype(np.uint32) << np.uint32(16)).view(np.float32) for one in (old, new))
        return _rounded(np.add(*wide).view(np.uint32))
    total = np.add(*(one.view(_TYPES[kind]) for one in (old, new)))
    instead = old if kind == "f64" else old.dtype.type(_NAN[kind])
    is_replaced = is_old_nan if kind == "f64" else np.isnan(total)
    return np.where(is_replaced, instead, total.view(old.dtype))


def _rounded(bits: Array) -> Array:
    """Return single precision as bf16, rounded to nearest even."""
    even = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    is_nan = bits & np.uint32(0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, np.uint32(_NAN["bf16"]), even >> np.uint32(16)).astype(np.uint16)
