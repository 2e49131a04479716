"""Integers as sums of multiples, to add them up and write them out anew.

LLVM's scalar evolution sees the number of a loop's iterations so: not as the values that the
source happens to name, but as a constant and a factor for each term.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.compiler.ir import Block, DType, Value, constant
from gpusim.lowering.analysis.algebra import number
from gpusim.lowering.passes.disjoint_or import zero_bits

# Terms of terms are followed so far.
DEPTH = 8


@dataclass(frozen=True)
class Linear:
    """A constant and terms with a factor each; it is meant to wrap around as C's integers do."""

    constant: int = 0
    factors: dict[Value, int] = field(default_factory=dict)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return the sum of this and `factor` times the other."""
        factors = dict(self.factors)
        for term, count in other.factors.items():
            factors[term] = factors.get(term, 0) + factor * count
        kept = {term: count for term, count in factors.items() if count}
        return Linear(self.constant + factor * other.constant, kept)

    def without_multiples(self, power: int) -> Linear:
        """Return what counts for the rest of a division by `power`, a power of two."""
        kept = {
            term: count
            for term, count in self.factors.items()
            if (count << zero_bits(term)) % power
        }
        return Linear(self.constant, kept)


def linear(value: Value, depth: int = DEPTH) -> Linear:
    """Return what additions and multiplications by constants a 32-bit integer consists of."""
    held = number(value)
    if held is not None:
        return Linear(held)
    known = [number(a) for a in value.args]
    if depth and value.op in ("add", "sub"):
        one, other = (linear(a, depth - 1) for a in value.args)
        return one.plus(other, 1 if value.op == "add" else -1)
    if depth and value.op == "mul" and known[1] is not None:
        return Linear().plus(linear(value.args[0], depth - 1), known[1])
    if depth and value.op == "shl" and known[1] is not None:
        return Linear().plus(linear(value.args[0], depth - 1), 1 << known[1])
    if depth and value.op == "cast" and _as_wide(value):
        return linear(value.args[0], depth - 1)
    return Linear(0, {value: 1})


def _as_wide(cast: Value) -> bool:
    source, target = cast.args[0].dtype, cast.dtype
    assert source is not None
    assert target is not None
    return source.kind in "iu" and target.kind in "iu" and source.itemsize == target.itemsize


class Writer:
    """Writes operations of one integer type at the end of a block."""

    def __init__(self, block: Block, dtype: DType) -> None:
        self.block = block
        self.dtype = dtype

    def emit(self, op: str, *args: Value) -> Value:
        """Write an operation."""
        value = Value(op, self.dtype, list(args), line=self.block.line)
        self.block.body.append(value)
        return value

    def number(self, value: int) -> Value:
        """Return a constant."""
        return constant(value, self.dtype)

    def total(self, wanted: Linear) -> Value:
        """Write a sum: the terms that are subtracted last become multiplications and additions.

        -1 - x is written as the complement of x.
        """
        terms = sorted(wanted.factors.items(), key=lambda item: (item[1] < 0, abs(item[1])))
        rest = wanted.constant
        less = next((item for item in terms if item[1] < 0), None)
        total: Value | None = None
        if rest == -1 and less is not None:
            terms.remove(less)
            total, rest = self.emit("not", self._multiple(less[0], -less[1])), 0
        for term, factor in terms:
            total = self._with(total, term, factor)
        if total is None:
            return self.number(rest)
        return self.emit("add", total, self.number(rest)) if rest else total

    def _with(self, total: Value | None, term: Value, factor: int) -> Value:
        if total is None:
            return self._multiple(term, factor)
        if factor == -1:
            return self.emit("sub", total, self._as_here(term))
        return self.emit("add", total, self._multiple(term, factor))

    def _multiple(self, term: Value, factor: int) -> Value:
        term = self._as_here(term)
        if factor == 1:
            return term
        if factor == -1:
            return self.emit("neg", term)
        return self.emit("mul", term, self.number(factor))

    def _as_here(self, term: Value) -> Value:
        return term if term.dtype == self.dtype else self.emit("cast", term)
