"""Matrix products of a warpgroup (`wgmma`): factors in shared memory by descriptor, and their sums.

Four warps compute D = A B + C of 64 rows, 16 a warp. B, and A unless it is in registers, lie in
shared memory in units of 16 bytes, as descriptors of 64 bits say (PTX ISA, Asynchronous Warpgroup
Level Matrix Shared Memory Layout): the address of the first in bits 0 to 13, the leading and the
stride offset in bits 16 to 29 and 32 to 45, all in units, and the swizzle in bits 62 and 63.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.isa.matrices import ELEMENTS, QUADS, MatrixProduct, along, summed
from gpusim.typing import Array

WARPS, GROUP_ROWS, UNIT = 4, 64, 16  # of a group; bytes
K_BYTES = 32  # of a row of A and a column of B: all are added up at once (`validate/matrices`)
_WIDTHS = (16, 128, 64, 32)  # bytes of a row of the pattern, by the bits of the swizzle
_ROWS = 8  # of a pattern


@dataclass(frozen=True)
class WarpgroupProduct:
    """A product of a warpgroup: `form` is that of one warp, with its 16 rows.

    A may be in registers. `transposed` and `negated` are pairs, for A and B: whether their rows (A)
    or columns (B), in place of k, run along the units in shared memory, and whether they are
    negated. `window` is the address at which shared memory begins.
    """

    form: MatrixProduct
    a_in_registers: bool
    transposed: tuple[bool, bool]
    negated: tuple[bool, bool]
    window: int

    def __str__(self) -> str:
        return str(self.form).replace("m16", "m64", 1)


def unit_addresses(low: Array, high: Array, rows: Array, size: int, *, transposed: bool) -> Array:
    """Return the addresses of a factor's units, of warps with a descriptor (`low`, `high`) each.

    They are shaped (warps, rows, units of k), or (warps, k, units of rows) where `transposed`.
    `rows` are those of each warp; a row has `size` bytes, or a transposed factor `size` rows of
    16-bit elements.
    """
    first, leading = low.astype(np.int64) & 0x3FFF, low.astype(np.int64) >> 16 & 0x3FFF
    stride, swizzle = high.astype(np.int64) & 0x3FFF, high.astype(np.int64) >> 30
    width = np.array(_WIDTHS)[swizzle]
    first, leading, stride, width = (x[:, None, None] * u for x, u in (
        (first, UNIT), (leading, UNIT), (stride, UNIT), (width, 1)
    ))  # fmt: skip
    per = width // UNIT  # units of a row of the pattern
    is_plain = per == 1
    if transposed:
        along_k, unit = np.arange(size)[None, :, None], rows[:, None, ::_ROWS] // _ROWS
        of_pattern = np.where(is_plain, leading, stride)
        beside = np.where(is_plain, stride, leading)
        place = along_k // _ROWS * of_pattern + unit // per * beside + unit % per * UNIT
        place = place + along_k % _ROWS * width
    else:
        unit, row = np.arange(size // UNIT)[None, None, :], rows[:, :, None]
        place = row // _ROWS * stride + row % _ROWS * width
        place = place + unit * np.where(is_plain, leading, UNIT)
    address = first + place
    return np.asarray(address ^ (address >> 3 & (per - 1) * UNIT))


def values(units: Array, kind: str, *, transposed: bool) -> Array:
    """Return the values of a factor, shaped (warps, rows, k), from its units' bytes."""
    element = ELEMENTS[kind]
    if element.bits == 1:
        bits = np.unpackbits(units, axis=-1, bitorder="little")
        return np.asarray(element.values(bits.reshape(*units.shape[:2], -1)))
    words = units.reshape(*units.shape[:2], -1).view(f"u{element.bits // 8}")
    if transposed:
        words = words.swapaxes(1, 2)
    return element.values(np.ascontiguousarray(words.astype(np.uint32)))


def product(detail: WarpgroupProduct, a: Array, b: Array, c: list[Array]) -> list[Array]:
    """Return the registers of D from the values of A and B and the registers of C."""
    if not any(np.count_nonzero(one) for one in (a, b, *c)):
        return [np.zeros((len(a), 32), np.uint32)] * len(c)
    a, b = (-x if negated else x for x, negated in zip((a, b), detail.negated, strict=True))
    with np.errstate(all="ignore"):
        return summed(detail.form, a, b, c)


def of_registers(detail: WarpgroupProduct, words: list[Array]) -> Array:
    """Return the values of A from its registers, as those of `mma.sync`."""
    assert len(words) == QUADS
    return along(words, detail.form.a, detail.form.m)
