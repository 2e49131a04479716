"""Linear sums written out as operations, as LLVM's scalar evolution expander does."""

from __future__ import annotations

from gpusim.compiler.ir import Block, Value, constant
from gpusim.lowering.analysis.linear import Linear
from gpusim.typing import DType


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
