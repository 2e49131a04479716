"""Integers as linear sums: a constant, and a factor for each term.

So LLVM's scalar evolution sees the number of a loop's iterations, and not as the values that
the source happens to name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.compiler.ir import Value
from gpusim.lowering.analysis.algebra import number
from gpusim.lowering.analysis.known_bits import zero_bits

# The depth to which terms of terms are followed.
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
        """Return the terms that matter for the remainder by `power`, a power of two."""
        kept = {
            term: count
            for term, count in self.factors.items()
            if (count << zero_bits(term)) % power
        }
        return Linear(self.constant, kept)


def linear(value: Value, depth: int = DEPTH) -> Linear:
    """Return a 32-bit integer as a linear sum: additions, multiplications by constants."""
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
