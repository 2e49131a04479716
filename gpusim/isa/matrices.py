"""Products of matrices in a warp's registers: the tensor cores' instructions, and their loads.

A matrix product is D = A B + C, its matrices laid out over the registers of 32 lanes as the PTX
ISA gives the fragments of `mma.sync`. Registers are words shaped (copies, warps, 32).

Floating-point sums are not IEEE 754's. A step of the hardware adds some products, each exact, to
the accumulator: all are aligned to the largest exponent among them and cut off after a number of
fraction bits, and the sum is rounded once, towards zero to single precision or to the nearest
half. Steps and bits by compute capability: Fasi et al. 2021 (Numerical behavior of NVIDIA tensor
cores), Khattak and Mikaitis 2025 (arXiv 2512.07004), Xie et al. 2025 (arXiv 2511.10909).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.isa.fused import fused_multiply_add
from gpusim.isa.rounding import BRAIN, F64, HALF, SINGLE, U32, rounded
from gpusim.typing import Array

GROUPS, QUADS = 8, 4  # lane 4 g + t: row g of A and C, column g of B; place t along the other axis
COLUMNS_AT_ONCE = 256  # of warps together: as many as have their products in the cache


@dataclass(frozen=True)
class Element:
    """A type of matrix elements: its bits, and their values as doubles.

    `least_exponent` is that of subnormal numbers, None of integers.
    """

    bits: int
    values: Callable[[Array], Array]
    least_exponent: int | None = None


def _signed(bits: int) -> Callable[[Array], Array]:
    up = np.uint32(32 - bits)
    return lambda word: ((word << up).view(np.int32) >> np.int32(32 - bits)).astype(F64)


def _tensor_float(word: Array) -> Array:
    """Return single precision with the 10 bits of fraction that TF32 has."""
    return SINGLE.value(word & U32(0xFFFFE000))


def _of_eight_bits(exponent_bits: int, least: int) -> Callable[[Array], Array]:
    """Return the values of E5M2, or of E4M3, which has no infinity and one NaN."""
    fraction = 7 - exponent_bits
    words = np.arange(128)
    exponent, rest = words >> fraction, words & (1 << fraction) - 1
    normal = (1 + rest / (1 << fraction)) * 2.0 ** (exponent + least - 1)
    table = np.where(exponent > 0, normal, rest / (1 << fraction) * 2.0**least)
    if exponent_bits == 5:
        table[0x7C:] = [np.inf, np.nan, np.nan, np.nan]
    else:
        table[0x7F] = np.nan
    table = np.concatenate([table, -table])
    return lambda word: table[word]


ELEMENTS: Mapping[str, Element] = {
    "f16": Element(16, HALF.value, -14),
    "bf16": Element(16, BRAIN.value, -126),
    "tf32": Element(32, _tensor_float, -126),
    "f32": Element(32, SINGLE.value, -126),
    "e4m3": Element(8, _of_eight_bits(4, -6), -6),
    "e5m2": Element(8, _of_eight_bits(5, -14), -14),
    "s8": Element(8, _signed(8)),
    "u8": Element(8, lambda word: word.astype(F64)),
    "s4": Element(4, _signed(4)),
    "u4": Element(4, lambda word: word.astype(F64)),
    "b1": Element(1, lambda word: word.astype(F64)),
    "s32": Element(32, lambda word: word.view(np.int32).astype(F64)),
    "f64": Element(64, lambda word: word.view(F64), -1022),
}


@dataclass(frozen=True)
class Alignment:
    """A step of a floating-point sum: its bytes of each factor, and the fraction bits it keeps.

    `result_bits` is the fraction of a result in single precision.
    """

    bytes_at_once: int
    fraction_bits: int
    result_bits: int = 23


# By compute capability, the newest that is not newer (sources: see above).
ALIGNMENTS: Mapping[int, Alignment] = {
    75: Alignment(16, 24),
    80: Alignment(16, 24),
    90: Alignment(32, 25),
}
EIGHT_BITS = Alignment(16, 13, 13)  # of E4M3 and E5M2, on compute capability 8.9


def alignment(arch: int, element: str) -> Alignment:
    """Return the alignment of sums of products of a type."""
    if element in ("e4m3", "e5m2"):
        return EIGHT_BITS
    return ALIGNMENTS[max(known for known in ALIGNMENTS if known <= arch)]


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product: sizes of A (m by k) and B (k by n), types of A, B, and of C and D.

    `operation` is for single bits: "and" or "xor", then a count of ones. A sum of integers wraps,
    or `saturates`.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    sums: str
    aligned: Alignment
    saturates: bool = False
    operation: str = ""

    @property
    def registers(self) -> tuple[int, int, int]:
        """The registers that a lane has of A, of B, and of C or D."""
        sizes = (self.m * self.k, self.a), (self.n * self.k, self.b), (self.m * self.n, self.sums)
        a, b, c = (size * ELEMENTS[kind].bits // (32 * 32) for size, kind in sizes)
        return a, b, c

    def __str__(self) -> str:
        return f"m{self.m}n{self.n}k{self.k} {self.a} {self.b} {self.sums}"


def product(form: MatrixProduct, words: Sequence[Array]) -> list[Array]:
    """Return the registers of D from those of A, B and C."""
    if not any(np.count_nonzero(word) for word in words):
        return [np.zeros((1, 1, 1), U32)] * form.registers[2]
    shape = np.broadcast_shapes(*(word.shape for word in words))[:2]
    flat = [np.broadcast_to(word, (*shape, 32)).reshape(-1, 32) for word in words]
    at_once = COLUMNS_AT_ONCE // form.n
    with np.errstate(all="ignore"):
        made = [
            _product(form, [word[begin : begin + at_once] for word in flat])
            for begin in range(0, len(flat[0]), at_once)
        ]
    count = form.registers[2]
    return [np.concatenate([d[n] for d in made]).reshape(*shape, 32) for n in range(count)]


def _product(form: MatrixProduct, words: Sequence[Array]) -> list[Array]:
    of_a, of_b, _ = form.registers
    a = along(words[:of_a], form.a, form.m)
    b = along(words[of_a : of_a + of_b], form.b, form.n)
    return summed(form, a, b, words[of_a + of_b :])


def summed(form: MatrixProduct, a: Array, b: Array, c: Sequence[Array]) -> list[Array]:
    """Return the registers of D, (warps, 32) each, from those of C.

    The values of A and B are shaped (warps, m, k) and (warps, n, k).
    """
    if form.sums == "s32":
        return _spread(_of_integers(form, a, b, _gathered(c, np.int32, form.n)).view(U32), U32)
    if form.sums == "f64":
        return _spread(_of_doubles(a, b, _gathered(c, np.uint64, form.n).view(F64)), np.uint64)
    bits = _gathered(c, np.uint16 if form.sums == "f16" else U32, form.n).astype(U32)
    bits = _warps_last(bits, (1, 2, 0))
    for factors in _steps(form, a, b):
        bits = _added(form, *factors, ELEMENTS[form.sums].values(bits))
    bits = np.ascontiguousarray(bits.transpose(2, 0, 1))
    return _spread(bits, np.uint16 if form.sums == "f16" else U32)


# -- fragments -----------------------------------------------------------------------------


def along(words: Sequence[Array], kind: str, rows: int) -> Array:
    """Return a factor's values, shaped (warps, rows, k): rows of A, or columns of B.

    A register has neighbours along k, in 4 lanes in turn; registers alternate between the rows g
    and g + 8, where there are as many.
    """
    element, halves = ELEMENTS[kind], rows // GROUPS
    held = _joined(words) if element.bits == 64 else np.stack(words, axis=-1)
    per = max(1, 32 // element.bits)
    if per > 1:
        shifts = np.arange(per, dtype=U32) * U32(element.bits)
        held = held[..., None] >> shifts & U32((1 << element.bits) - 1)
    parts = held.reshape(len(held), GROUPS, QUADS, -1, halves, per)
    placed = parts.transpose(0, 4, 1, 3, 2, 5).reshape(len(held), rows, -1)
    return element.values(np.ascontiguousarray(placed))


def _joined(words: Sequence[Array]) -> Array:
    """Return pairs of registers as words of 64 bits, along the last axis."""
    wide = np.stack(words, axis=-1).astype(np.uint64)
    return np.asarray(wide[..., ::2] | wide[..., 1::2] << np.uint64(32))


def _gathered(words: Sequence[Array], kind: Any, n: int) -> Array:
    """Return C's elements, shaped (warps, m, n): a lane has pairs of them, in rows g and g + 8."""
    held = np.ascontiguousarray(np.stack(words, axis=-1)).view(kind)
    parts = held.reshape(len(held), GROUPS, QUADS, n // GROUPS, -1, 2)
    return np.ascontiguousarray(parts.transpose(0, 4, 1, 3, 2, 5)).reshape(len(held), -1, n)


def _spread(values: Array, kind: Any) -> list[Array]:
    """Return D's registers: the inverse of `_gathered`."""
    parts = values.view(np.uint64) if kind is np.uint64 else values.astype(kind)
    columns = parts.shape[2] // GROUPS
    parts = parts.reshape(len(parts), -1, GROUPS, columns, QUADS, 2).transpose(0, 2, 4, 3, 1, 5)
    held = np.ascontiguousarray(parts).reshape(len(parts), 32, -1).view(U32)
    return [held[..., number] for number in range(held.shape[-1])]


# -- sums ----------------------------------------------------------------------------------


def _of_integers(form: MatrixProduct, a: Array, b: Array, c: Array) -> Array:
    """Return sums of integers: doubles hold the products' sums exactly."""
    products = a @ b.swapaxes(1, 2)
    if form.operation == "xor":
        ones = a.sum(axis=2)[:, :, None] + b.sum(axis=2)[:, None, :]
        products = ones - 2 * products
    total = products.astype(np.int64) + c
    if form.saturates:
        limits = np.iinfo(np.int32)
        total = np.clip(total, limits.min, limits.max)
    return total.astype(np.int32)


def _of_doubles(a: Array, b: Array, c: Array) -> Array:
    """Return sums of doubles: one multiplication and addition after the other, each rounded."""
    for k in range(a.shape[2]):
        c = fused_multiply_add(a[:, :, None, k], b[:, None, :, k], c)
    return c


def _steps(form: MatrixProduct, a: Array, b: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the parts of both factors that are summed at once, shaped (k, rows, warps)."""
    a, b = _warps_last(a, (2, 1, 0)), _warps_last(b, (2, 1, 0))
    size = min(form.k, 8 * form.aligned.bytes_at_once // ELEMENTS[form.a].bits)
    for begin in range(0, form.k, size):
        yield a[begin : begin + size], b[begin : begin + size]


def _warps_last(values: Array, axes: tuple[int, ...]) -> Array:
    """Return values with their axes in another order: innermost is the longest, of warps."""
    return np.ascontiguousarray(values.transpose(axes))


def _added(form: MatrixProduct, a: Array, b: Array, c: Array) -> Array:
    """Return the bits of an accumulator after a step: aligned, cut off, added up and rounded.

    It is shaped (m, n, warps).
    """
    of_a, of_b, of_c = _exponents(a, form.a), _exponents(b, form.b), _exponents(c, form.sums)
    exponents = of_a[:, :, None] + of_b[:, None]
    largest = np.maximum(exponents.max(axis=0), of_c).astype(np.int32)
    keep = form.aligned.fraction_bits
    scale = np.ldexp(1.0, keep - largest)
    products = a[:, :, None] * b[:, None]
    plain = None
    if not all(np.isfinite(x).all() for x in (a, b, c)):
        plain = products.sum(axis=0) + c
        products, c = (np.where(np.isfinite(x), x, 0.0) for x in (products, c))
    products *= scale
    total = np.trunc(products, out=products).sum(axis=0) + np.trunc(c * scale)
    exact = np.ldexp(total, largest - keep)
    if plain is not None:
        exact = np.where(np.isfinite(plain), exact, plain)
    return _rounded(form, exact)


def _rounded(form: MatrixProduct, exact: Array) -> Array:
    """Return a sum's bits: infinite if too large, a positive zero if too small (measured)."""
    if form.sums == "f16":
        bits = rounded(exact, HALF)
    else:
        exact = np.where(np.abs(exact) >= _TOO_LARGE, np.copysign(np.inf, exact), exact)
        bits = rounded(exact, SINGLE, "RZ")
        lost = 23 - form.aligned.result_bits
        bits = np.where(np.isfinite(exact), bits & U32(-(1 << lost) & 0xFFFFFFFF), bits)
    vanished = (ELEMENTS[form.sums].values(bits) == 0) & (exact != 0)
    return np.where(vanished, U32(0), bits)


_TOO_LARGE = 2.0**128
_NO_EXPONENT = -600  # of zero: below that of any product


def _exponents(values: Array, kind: str) -> Array:
    """Return exponents; subnormal numbers have that of the least normal one."""
    least = ELEMENTS[kind].least_exponent
    assert least is not None
    exponents: Array = np.maximum(np.frexp(values)[1] - 1, least).astype(np.int16)
    exponents[values == 0] = _NO_EXPONENT
    return exponents


# -- loads and stores ----------------------------------------------------------------------


def from_rows(words: Sequence[Array], count: int, *, transposed: bool) -> list[Array]:
    """Return fragments of `count` matrices of 8 by 8 halves from the four words of each row.

    Row r of matrix i lies in lane 8 i + r. Lane 4 r + c gets columns 2 c and 2 c + 1 of row r of
    each matrix; of the matrix's transpose, where `transposed` (PTX ISA, ldmatrix).
    """
    halves = _halves(words)
    lane = np.arange(32)
    row, column = lane // QUADS, 2 * (lane % QUADS)
    made = []
    for number in range(count):
        first = 8 * number
        if transposed:
            low, high = halves[..., first + column, row], halves[..., first + column + 1, row]
        else:
            low, high = halves[..., first + row, column], halves[..., first + row, column + 1]
        made.append(low.astype(U32) | high.astype(U32) << U32(16))
    return made


def to_rows(fragments: Sequence[Array], *, transposed: bool) -> list[Array]:
    """Return the four words of each row from the fragments of matrices: `from_rows` inverted."""
    shape = np.broadcast_shapes(*(one.shape for one in fragments))[:2]
    halves = np.zeros((*shape, 32, 8), dtype=np.uint16)
    lane = np.arange(32)
    row, column = lane // QUADS, 2 * (lane % QUADS)
    for number, fragment in enumerate(fragments):
        for side in (0, 1):
            value = (fragment >> U32(16 * side)).astype(np.uint16)
            first = 8 * number
            if transposed:
                halves[..., first + column + side, row] = value
            else:
                halves[..., first + row, column + side] = value
    words = halves.view(U32)
    return [words[..., number] for number in range(4)]


def _halves(words: Sequence[Array]) -> Array:
    shape = np.broadcast_shapes(*(word.shape for word in words))[:2]
    whole = np.stack([np.broadcast_to(word, (*shape, 32)) for word in words], axis=-1)
    return np.ascontiguousarray(whole, dtype=U32).view(np.uint16)
