"""Indices as sums of products: common parts of two, and their distance.

A polynomial in values of the source, as in LLVM's scalar evolution:
`(r + 8) * n + c` is `r * n + c`, and `8 * n` more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gpusim.compiler.ir import Value
from gpusim.lowering.analysis.algebra import number, power_of_two, type_of
from gpusim.lowering.analysis.known_bits import zero_bits

# The depth to which operands are followed, and the limit of products in a sum.
DEPTH = 8
MOST_PRODUCTS = 12

# The factor of a 32-bit multiplication is signed.
LARGEST_MULTIPLE = 1 << 31

Product = tuple[Value, ...]


@dataclass(frozen=True)
class IndexSum:
    """A constant, and a factor for each product of values, in the order of `id`."""

    constant: int = 0
    factors: dict[Product, int] = field(default_factory=dict)

    def plus(self, other: IndexSum, factor: int = 1) -> IndexSum:
        """Return the sum of this and `factor` times the other."""
        factors = Counter(self.factors)
        for product, count in other.factors.items():
            factors[product] += factor * count
        kept = {product: count for product, count in factors.items() if count}
        return IndexSum(self.constant + factor * other.constant, kept)

    def times(self, other: IndexSum) -> IndexSum:
        """Return the product of the two."""
        total = IndexSum(self.constant * other.constant)
        total = total.plus(IndexSum(0, self.factors), other.constant)
        total = total.plus(IndexSum(0, other.factors), self.constant)
        for one, count in self.factors.items():
            for two, again in other.factors.items():
                product = tuple(sorted((*one, *two), key=id))
                total = total.plus(IndexSum(0, {product: count * again}))
        return total


def index_sum(value: Value, depth: int = DEPTH) -> IndexSum:
    """Return a signed integer as a sum of products of values.

    A signed integer does not wrap around, in C, so that widening it widens its parts.
    """
    held = number(value)
    if held is not None:
        return IndexSum(held)
    found = _parts(value, depth) if depth and _is_signed(value) else None
    if found is None or len(found.factors) > MOST_PRODUCTS:
        return IndexSum(0, {(value,): 1})
    return found


@dataclass(frozen=True)
class Scaled:
    """An index as a multiple of one value, and a constant."""

    term: Value
    factor: int
    step: int


def scaled(index: Value, size: int) -> Scaled | None:
    """Return an index as a multiple for an address computation, None if that is the index.

    The multiple of an element's `size` in bytes has to fit into an instruction.
    """
    found = _taken_apart(index)
    total = index_sum(index)
    if len(total.factors) == 1:
        ((product, factor),) = total.factors.items()
        if len(product) == 1:
            found = Scaled(product[0], factor, total.constant)
    if found.term is index or not 0 < found.factor * size < LARGEST_MULTIPLE:
        return None
    return found if type_of(found.term).itemsize < 8 or power_of_two(found.factor) else None


def _taken_apart(index: Value) -> Scaled:
    """Return an index without the constants and casts around the value that it consists of."""
    factor, step = 1, 0
    while _is_signed(index):
        held = number(index.args[-1]) if index.args else None
        if index.op == "cast" and _is_widening(index):
            pass
        elif index.op == "shl" and held is not None:
            factor <<= held
        elif index.op == "mul" and held is not None:
            factor *= held
        elif index.op == "add" and held is not None:
            step += factor * held
        else:
            break
        index = index.args[0]
    return Scaled(index, factor, step)


def _is_widening(cast: Value) -> bool:
    source = cast.args[0]
    return _is_signed(source) and type_of(cast).itemsize >= type_of(source).itemsize >= 4


def _parts(value: Value, depth: int) -> IndexSum | None:
    """Return the sum that an operation makes of its operands', None for any other operation."""
    if value.op == "cast":
        return index_sum(value.args[0], depth - 1) if _is_widening(value) else None
    if value.op in ("add", "sub", "mul"):
        one, other = (index_sum(a, depth - 1) for a in value.args)
        if value.op == "mul":
            return one.times(other)
        return one.plus(other, 1 if value.op == "add" else -1)
    shift = number(value.args[1]) if value.op in ("shl", "or") else None
    if shift is None:
        return None
    if value.op == "shl":
        return IndexSum().plus(index_sum(value.args[0], depth - 1), 1 << shift)
    if 0 <= shift < 1 << min(zero_bits(value.args[0]), 31):
        return index_sum(value.args[0], depth - 1).plus(IndexSum(shift))
    return None


def _is_signed(value: Value) -> bool:
    return value.dtype is not None and value.dtype.kind == "i"
