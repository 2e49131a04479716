"""Operands: all combinations of a type's edges, then ordinary numbers, then any bits.

They follow from a 32-bit mixing function (Wellons, "Prospecting for Hash Functions", 2018), so
that they are the same with every version of NumPy.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from gpusim.typing import Array

from .operation import THREADS, TYPES, Operation

# Edges of each operand to combine, by the number of operands.
CROSSED = {1: 10_000, 2: 32, 3: 12}

FLOAT_EDGES = (
    0.0, 1.0, -0.0, -1.0, 1.5, 0.1, 0.5, -0.5, 2.0, -2.0, -2.5, 3.0, -0.3, 10.0, -7.25, 255.0,
    65504.0, -127.5, 1e-3, 1e5, -3e-5, 3.14159265, 0.99, -1.01, 88.0, -103.0, 1e10, -1e-10,
)  # fmt: skip
FLOAT_BITS = {
    "f2": (0x0001, 0x7BFF, 0x7C00, 0x7E00, 0xFFFF, 0xFC00, 0x8001, 0xFBFF, 0x03FF, 0x0400, 0x7C01,
           0x3C01),
    "bf16": (0x0001, 0x7F7F, 0x7F80, 0x7FC0, 0xFFFF, 0xFF80, 0x8001, 0xFF7F, 0x007F, 0x0080, 0x7F81,
             0x3F81),
    "f4": (
        0x00000001, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0xFFFFFFFF, 0xFF800000, 0x80000001,
        0xFF7FFFFF, 0x007FFFFF, 0x00800000, 0x7FA00001, 0x3F800001, 0x3F7FFFFF, 0x4F000000,
        0xCF000000, 0x5F000000, 0x7E800000, 0x7F000000, 0x4B7FFFFF,
        0x00FFFFFE, 0x3F000001, 0x7F800001, 0x4C000001, 0x4D7F1234, 0x00000002,
    ),
    "f8": (
        1, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000, 0xFFFFFFFFFFFFFFFF,
        0xFFF0000000000000, 0x8000000000000001, 0xFFEFFFFFFFFFFFFF, 0x000FFFFFFFFFFFFF,
        0x0010000000000000, 0x7FF0000000000001, 0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF,
        0x41DFFFFFFFC00000, 0xC1E0000000000000, 0x43E0000000000000, 0x47EFFFFFE0000000,
        0x380FFFFFE0000000, 0x36A0000000000000,
    ),
}  # fmt: skip


def mixed(seed: int, count: int) -> Array:
    """Return pseudo-random 32-bit numbers."""
    x = np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x9E3779B9 & 0xFFFFFFFF)
    x &= np.uint64(0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return (x ^ (x >> np.uint64(16))).astype(np.uint32)


def _bits(seed: int, count: int, itemsize: int) -> Array:
    words = mixed(seed, count * 2).reshape(count, 2).view(np.uint64)[:, 0]
    return words.astype(f"u{itemsize}")


@cache
def edges(kind: str) -> Array:
    """Return the edges of a type's elements, the sharpest first."""
    element = "bf16" if kind.startswith("bf16") else TYPES[kind][0]
    if element[0] in "iu":
        bits = np.dtype(element).itemsize * 8
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if element[0] == "i" else (0, (1 << bits) - 1)
        )
        found = [0, 1, high, low, 2, 3, high - 1, low + 1, 7, 10, high >> 1, (high >> 1) + 1]
        found += [-1, -2, -7, 31, 32, 33, 63, 64, 100, -100, 127, 128, -128, 255, 256, 32767]
        found += [1 << k for k in range(2, bits - 1)] + [
            (1 << k) + 1 for k in range(7, bits - 1, 8)
        ]
        wrapped = [(v - low) % (1 << bits) + low for v in found]
        return np.array(list(dict.fromkeys(wrapped)), dtype=element)
    if element == "bf16":
        plain = (np.array(FLOAT_EDGES, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return _alternating(np.array(FLOAT_BITS["bf16"], np.uint16), plain)
    size = np.dtype(element).itemsize
    sharp = np.array(FLOAT_BITS[element], f"u{size}").view(element)
    with np.errstate(over="ignore"):
        plain = np.array(FLOAT_EDGES, np.float64).astype(element)
    return _alternating(sharp, plain)


def _alternating(first: Array, second: Array) -> Array:
    """Return two lists in turn, by their bits: a signalling NaN stays one."""
    bits = first.dtype.str.replace("f", "u")
    pairs = itertools.zip_longest(first.view(bits), second.view(bits))
    return np.array([v for pair in pairs for v in pair if v is not None], bits).view(first.dtype)


def _ordinary(kind: str, seed: int, count: int) -> Array:
    """Return small whole numbers, or floating-point numbers of moderate size."""
    element = "bf16" if kind.startswith("bf16") else TYPES[kind][0]
    raw = mixed(seed, count).astype(np.int64)
    if element[0] == "i":
        return (raw % 201 - 100).astype(element)
    if element[0] == "u":
        return (raw % 201).astype(element)
    sign = np.where(raw & 1, -1.0, 1.0)
    scale = np.exp2((raw >> 1) % 16 - 9.0)
    values = sign * scale * (1 + (raw >> 8) / 2.0**24)
    if element == "bf16":
        values = values.astype(np.float32).view(np.uint32) >> 16
    return np.asarray(values).astype("u2" if element == "bf16" else element)


def operands(operation: Operation) -> list[Array]:
    """Return the operand arrays of an operation, of 2,048 elements each, vectors side by side."""
    kinds = operation.operands
    crossed = _crossed(kinds)
    made = []
    for number, kind in enumerate(kinds):
        element, width = TYPES[kind]
        seed = zlib.crc32(f"{','.join(kinds)} {number}".encode())
        count = THREADS * width
        first = crossed[number][:count]
        left = count - len(first)
        plain = _ordinary(kind, seed, left // 2)
        rest = _bits(seed + 1, left - len(plain), np.dtype(element).itemsize).view(element)
        made.append(np.concatenate([first, plain, rest]))
    return made


def _crossed(kinds: Sequence[str]) -> list[Array]:
    """Return all combinations of the operands' edges; a vector's elements take them in turn."""
    if not kinds:
        return []
    most = CROSSED[len(kinds)]
    lists = [edges(kind)[:most] for kind in kinds]
    grid = np.meshgrid(*[np.arange(len(one)) for one in lists], indexing="ij")
    made = []
    for kind, one, places in zip(kinds, lists, grid, strict=True):
        chosen = one[places.ravel()]
        width = TYPES[kind][1]
        # The elements of a vector differ: each next one is some combinations on.
        shifted = [np.roll(chosen, 7 * part) for part in range(width)]
        made.append(np.stack(shifted, axis=1).ravel())
    return made
