"""Operations of WebAssembly in Python, for translated modules (`python_code`).

A vector is an array of words whose last axis has four; further axes are vectors side by side.
Nothing changes an array once it is made.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gpusim.isa.fused import fused_multiply_add
from gpusim.typing import Array
from gpusim.wasm.memory import TrapError

u1, u2, u4, u8 = (np.dtype(f"<u{size}") for size in (1, 2, 4, 8))
i4, i8, f4, f8 = map(np.dtype, ("<i4", "<i8", "<f4", "<f8"))
ZERO = np.zeros(4, u4)
_ALL = np.uint32(0xFFFFFFFF)
_KINDS = {"i32x4": (u4, i4), "i64x2": (u8, i8), "f32x4": (f4, f4), "f64x2": (f8, f8)}

# -- scalars ---------------------------------------------------------------------------------


def select(one: Any, other: Any, condition: int) -> Any:
    """Return one value or the other."""
    return one if condition else other


def zeros_below(value: int, bits: int) -> int:
    """Return the zeros below the lowest bit that is set."""
    return (value & -value).bit_length() - 1 if value else bits


def _signed(value: int, bits: int) -> int:
    return (value ^ 1 << bits - 1) - (1 << bits - 1)


def divided(a: int, b: int, bits: int) -> int:
    """Return a signed quotient, cut to a whole number."""
    one, other = _signed(a, bits), _signed(b, bits)
    whole = abs(one) // abs(other)
    if whole >> bits - 1 and (one < 0) == (other < 0):
        raise TrapError
    return (whole if (one < 0) == (other < 0) else -whole) & (1 << bits) - 1


def rest(a: int, b: int, bits: int) -> int:
    """Return the rest of a signed division, with the sign of the dividend."""
    one, other = _signed(a, bits), _signed(b, bits)
    left = abs(one) % abs(other)
    return (left if one >= 0 else -left) & (1 << bits) - 1


def truncated(value: Any, bits: int, signed: bool) -> Any:
    """Return a number as an integer, the nearest one that exists; 0 for a NaN."""
    if isinstance(value, np.ndarray) and value.ndim:
        return by_lane(truncated, value, bits, signed)
    if value != value:
        return 0
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if abs(value) == math.inf:
        return (high if value > 0 else low) & (1 << bits) - 1
    whole = int(value)
    return min(max(whole, low), high) & (1 << bits) - 1


def converted(value: Any, of: str, to: str) -> Any:
    """Return integers of 64 bits as numbers, rounded once."""
    return np.asarray(value).astype(u8).view(of).astype(to)[()]


def by_lane(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function, for each of several lanes where operands have them."""
    if any(isinstance(one, np.ndarray) for one in given):
        return np.frompyfunc(function, len(given), 1)(*given)
    return function(*given)


def float32_of(bits: int) -> Any:
    """Return the number with these bits."""
    return np.uint32(bits).view(f4)


def float64_of(bits: int) -> Any:
    """Return the number with these bits."""
    return np.uint64(bits).view(f8)


def bits_of_float(value: Any) -> int:
    """Return the bits of a number."""
    return int(value.view(f"u{value.itemsize}"))


# -- vectors ---------------------------------------------------------------------------------


def _extreme(kind: str, name: str) -> Callable[[Array, Array], Array]:
    plain, signed = _KINDS[kind]
    base, _, sign = name.partition("_")
    dtype = signed if sign == "s" else plain
    operation: Any = np.minimum if base == "min" else np.maximum
    if kind[0] == "i":
        return lambda a, b: operation(a.view(dtype), b.view(dtype)).view(u4)
    bits = np.bitwise_or if base == "min" else np.bitwise_and  # of zeros with different signs

    def extreme(a: Array, b: Array) -> Array:
        words = np.dtype(f"u{dtype.itemsize}")
        same: Array = bits(a.view(words), b.view(words))
        one, other = a.view(dtype), b.view(dtype)
        return np.where(one == other, same.view(dtype), operation(one, other)).view(u4)

    return extreme


def _splat(kind: str) -> Callable[[Any], Array]:
    dtype, _ = _KINDS[kind]
    count = 16 // dtype.itemsize

    def splat(value: Any) -> Array:
        if not isinstance(value, np.ndarray):
            return np.full(count, value, dtype).view(u4)
        made = np.empty((*value.shape, count), dtype)
        made[:] = value[..., None]
        return made.view(u4)

    return splat


def _extract(kind: str) -> Callable[[Array, int], Any]:
    dtype, _ = _KINDS[kind]
    to = dtype if kind[0] == "f" else np.dtype(object)

    def extract(a: Array, lane: int) -> Any:
        if a.ndim == 1:
            return a.view(dtype)[lane] if kind[0] == "f" else int(a.view(dtype)[lane])
        return a.view(dtype)[..., lane].astype(to)

    return extract


def _replace(kind: str) -> Callable[[Array, Any, int], Array]:
    dtype, _ = _KINDS[kind]

    def replaced(a: Array, value: Any, lane: int) -> Array:
        made = a.view(dtype).copy()
        made[..., lane] = value
        return made.view(u4)

    return replaced


def _absolute(kind: str) -> Callable[[Array], Array]:
    dtype = np.dtype(f"u{_KINDS[kind][0].itemsize}")
    if kind[0] == "i":
        return lambda a: np.abs(a.view(_KINDS[kind][1])).view(u4)
    most = dtype.type((1 << 8 * dtype.itemsize - 1) - 1)
    return lambda a: (a.view(dtype) & most).view(u4)


def _negative(kind: str) -> Callable[[Array], Array]:
    dtype = np.dtype(f"u{_KINDS[kind][0].itemsize}")
    sign = dtype.type(1 << 8 * dtype.itemsize - 1)
    return lambda a: (a.view(dtype) ^ sign).view(u4)


def _fused(kind: str) -> Callable[[Array, Array, Array], Array]:
    dtype, _ = _KINDS[kind]

    def fused(*given: Array) -> Array:
        return fused_multiply_add(*np.broadcast_arrays(*(x.view(dtype) for x in given))).view(u4)

    return fused


def _bitmask(kind: str) -> Callable[[Array], int]:
    dtype = _KINDS[kind][1]
    return lambda a: int(np.packbits(a.view(dtype) < 0, bitorder="little")[0])


def v128_bitselect(a: Array, b: Array, mask: Array) -> Array:
    """Return bits of one vector where a mask has ones, else of the other."""
    return b ^ ((a ^ b) & mask)


def v128_any_true(a: Array) -> int:
    """Return whether a bit is set."""
    return int(a.any())


def i32x4_all_true(a: Array) -> int:
    """Return whether no lane is zero."""
    return int(a.all())


def shuffle(a: Array, b: Array, words: tuple[int, ...]) -> Array:
    """Return words of two vectors in a row."""
    if a.shape != b.shape:
        a, b = np.broadcast_arrays(a, b)
    made = np.empty(a.shape, u4)
    for place, word in enumerate(words):
        made[..., place] = a[..., word] if word < 4 else b[..., word - 4]
    return made


def i8x16_popcnt(a: Array) -> Array:
    """Return the bits that are set in each byte."""
    counts: Array = np.bitwise_count(a.view(u1))
    return counts.view(u4)


def i16x8_extadd_pairwise_i8x16_u(a: Array) -> Array:
    """Return sums of bytes in pairs."""
    parts = a.view(u1).astype(u2)
    sums: Array = parts[..., ::2] + parts[..., 1::2]
    return sums.view(u4)


def i32x4_extadd_pairwise_i16x8_u(a: Array) -> Array:
    """Return sums of half words in pairs."""
    parts = a.view(u2).astype(u4)
    return np.ascontiguousarray(parts[..., ::2] + parts[..., 1::2])


def f32x4_demote_f64x2_zero(a: Array) -> Array:
    """Return two numbers in single precision, and zeros."""
    made = np.zeros((*a.shape[:-1], 4), f4)
    made[..., :2] = a.view(f8)
    return made.view(u4)


def bits_of(a: Array) -> int:
    """Return the signs of all 32 lanes, of a vector for each four of them, or one for all."""
    signs = a.view(i4) < 0
    if a.ndim == 1:
        return int(np.packbits(signs, bitorder="little")[0]) * 0x11111111
    return int.from_bytes(np.packbits(signs, bitorder="little"), "little")


@lru_cache(1024)
def masks_of(bits: int) -> Array:
    """Return 32 bits as masks of lanes."""
    lanes = bits >> np.arange(32, dtype=np.int64) & 1
    return (lanes.astype(u4) * _ALL).reshape(8, 4)


def _operations() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for kind in _KINDS:
        for name in ("min", "max"):
            for sign in [""] if kind[0] == "f" else ["_s", "_u"]:
                made[f"{kind}_{name}{sign}"] = _extreme(kind, name + sign)
        if kind[0] == "f":
            made[f"{kind}_neg"], made[f"{kind}_relaxed_madd"] = _negative(kind), _fused(kind)
        else:
            made[f"{kind}_bitmask"] = _bitmask(kind)
        made[f"{kind}_abs"] = _absolute(kind)
        made[f"{kind}_splat"] = _splat(kind)
        made[f"{kind}_extract_lane"], made[f"{kind}_replace_lane"] = _extract(kind), _replace(kind)
    return made


def _structs() -> dict[str, Any]:
    made: dict[str, Any] = {}
    for size, letter in ((1, "b"), (2, "h"), (4, "i"), (8, "q")):
        made[f"load_s{size}"] = struct.Struct(f"<{letter}").unpack_from
        made[f"load_u{size}"] = struct.Struct(f"<{letter.upper()}").unpack_from
        made[f"store_u{size}"] = struct.Struct(f"<{letter.upper()}").pack_into
    return made


_OWN = (
    select, by_lane, converted, zeros_below, divided, rest, truncated, float32_of, float64_of,
    bits_of_float,
    v128_bitselect, v128_any_true, i32x4_all_true, shuffle, i8x16_popcnt,
    i16x8_extadd_pairwise_i8x16_u, i32x4_extadd_pairwise_i16x8_u, f32x4_demote_f64x2_zero, bits_of,
    masks_of,
)  # fmt: skip
NAMES: dict[str, Any] = {
    **{one.__name__: one for one in _OWN},
    **_operations(),
    **_structs(),
    "array": np.array,
    "ALL_u4": np.uint32(0xFFFFFFFF),
    "ALL_u8": np.uint64(0xFFFFFFFFFFFFFFFF),
    **{one.str[1:]: one for one in (u4, u8, i4, i8, f4, f8)},
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "sqrt": np.sqrt,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "uint32": np.uint32,
    "float32": np.float32,
    "float64": np.float64,
    "floor": np.floor,
    "nearest": np.rint,
    "copysign": np.copysign,
    "ZERO": ZERO,
    "TrapError": TrapError,
}


def of_memory(memory: bytearray) -> dict[str, Any]:
    """Return the operations on a memory, by name."""
    ndarray = np.ndarray

    def load(at: int) -> Array:
        return ndarray((4,), u4, memory, at).copy()

    def store(at: int, value: Array) -> None:
        ndarray((4,), u4, memory, at)[:] = value

    def wide_load(at: int, step: int) -> Array:
        return ndarray((8, 4), u4, memory, at, (step, 4)).copy()

    def wide_store(at: int, step: int, value: Array) -> None:
        ndarray((8, 4), u4, memory, at, (step, 4))[:] = value

    def splat_of(dtype: np.dtype[Any]) -> Callable[[int], Array]:
        count = 16 // dtype.itemsize
        return lambda at: ndarray((count,), dtype, memory, at, (0,)).copy().view(u4)

    def load32_zero(at: int) -> Array:
        made = ZERO.copy()
        made[:1] = ndarray((1,), u4, memory, at)
        return made

    def load32_lane(at: int, vector: Array, lane: int) -> Array:
        made = vector.copy()
        made[lane : lane + 1] = ndarray((1,), u4, memory, at)
        return made

    def memory_copy(to: int, source: int, count: int) -> None:
        if max(to, source) + count > len(memory):
            raise TrapError
        memory[to : to + count] = memory[source : source + count]

    def memory_fill(at: int, byte: int, count: int) -> None:
        if at + count > len(memory):
            raise TrapError
        memory[at : at + count] = bytes((byte & 255,)) * count

    own = (load, store, wide_load, wide_store, load32_zero, load32_lane, memory_copy, memory_fill)
    return {
        **{one.__name__: one for one in own},
        "load32_splat": splat_of(u4),
        "load64_splat": splat_of(u8),
        "M": memory,
    }
