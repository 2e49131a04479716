"""The number of a loop's iterations, written out before the loop."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.compiler.ir import BOOL, Block, Function, Value
from gpusim.lowering.analysis.algebra import number
from gpusim.lowering.analysis.induction_variables import InductionVariable, recurrence
from gpusim.lowering.analysis.linear import Linear, linear
from gpusim.lowering.analysis.loops import Loop
from gpusim.lowering.graph import make_preheader
from gpusim.lowering.passes.expander import Writer
from gpusim.lowering.passes.folder import Folder
from gpusim.lowering.passes.gvn import operation_key


@dataclass(frozen=True)
class IterationCount:
    """The number of a loop's iterations: `back` is one less, `extra` what rows leave over."""

    count: Value
    back: Value
    extra: Value


def emit_iteration_count(
    function: Function, counter: InductionVariable, around: Loop | None, before: Block, row: int
) -> IterationCount:
    """Write the number of iterations, at least 1, at the end of `before`, as unsigned integers.

    `around` is the loop around, `row` the number of iterations in a row, a power of two.
    """
    write = Writer(before, counter.dtype)
    up = counter.step > 0
    bound = counter.bound
    if counter.comparison != "ne" and not _asked(function, counter, before):
        nearest = write.emit("add", counter.start, write.number(1 if up else -1))
        bound = write.emit("max" if up else "min", bound, nearest)
    ends = (bound, counter.start) if up else (counter.start, bound)
    span = _Span(function, around, write, ends)
    counts = Writer(before, counter.count_type)
    stride = abs(counter.step)
    if stride == 1:
        count, back, low = span.less(0), span.less(1), span.rest(row)
        extra = counts.emit("and", counts.emit("cast", low), counts.number(row - 1))
        return IterationCount(counts.emit("cast", count), counts.emit("cast", back), extra)
    places = counts.number(stride.bit_length() - 1)
    back = counts.emit("shr", counts.emit("cast", span.less(1)), places)
    count = counts.emit("add", back, counts.number(1))
    return IterationCount(count, back, counts.emit("and", count, counts.number(row - 1)))


class _Span:
    """How far a counter has to go, as LLVM writes it out.

    What begins at a variable is written as a sum of its smallest terms. A term that the loop
    around counts in steps of its own is written as a multiple of that loop's turns, which are
    counted for it.
    """

    def __init__(
        self, function: Function, around: Loop | None, write: Writer, ends: tuple[Value, Value]
    ) -> None:
        self.function = function
        self.around = around
        self.write = write
        self.ends = ends
        self.turns: Value | None = None
        whole = linear(ends[0]).plus(linear(ends[1]), -1)
        self.steps = {term: recurrence(around, term) for term in whole.factors} if around else {}
        self.anew = number(ends[1]) is None or any(self.steps.values())
        self.whole = whole

    def less(self, count: int) -> Value:
        """Write the span minus a constant."""
        if not self.anew:
            return self.write.total(
                Linear(-count, {self.ends[0]: 1}).plus(linear(self.ends[1]), -1)
            )
        return self._written(self.whole.plus(Linear(-count)))

    def rest(self, row: int) -> Value:
        """Write something with the same rest as the span in a division by `row`."""
        if not self.anew:
            return self.less(0)
        return self._written(self.whole, row)

    def _written(self, wanted: Linear, row: int = 0) -> Value:
        fixed, moving = Linear(wanted.constant), Linear()
        for term, factor in wanted.factors.items():
            uneven = self.steps.get(term)
            if uneven is None:
                fixed = fixed.plus(Linear(0, {term: factor}))
            else:
                fixed = fixed.plus(linear(uneven[0]), factor)
                moving = moving.plus(Linear(0, {uneven[1]: 1}), factor)
        if row:
            fixed, moving = fixed.without_multiples(row), moving.without_multiples(row)
        if not moving.factors:
            return self.write.total(fixed)
        first = self._writer_of(fixed).total(fixed)
        distance = self.write.emit("mul", self._turns(), self.write.total(moving))
        return self.write.emit("add", distance, first)

    def _writer_of(self, fixed: Linear) -> Writer:
        """Return where to write a sum: before the loop around, if it does not change there."""
        assert self.around is not None
        inside = {v for b in self.around.blocks for v in (*b.phis, *b.body)}
        if not inside.isdisjoint(fixed.factors):
            return self.write
        return Writer(make_preheader(self.function, self.around), self.write.dtype)

    def _turns(self) -> Value:
        """Return the number of turns that the loop around has made."""
        if self.turns is None:
            assert self.around is not None
            header, (latch,) = self.around.header, self.around.latches
            one = self.write.number(1)
            turns = Value("phi", self.write.dtype, line=header.line)
            following = Value("add", self.write.dtype, [turns, one], line=latch.line)
            zero = self.write.number(0)
            turns.args = [following if p is latch else zero for p in header.preds]
            header.phis.append(turns)
            latch.body.append(following)
            self.turns = turns
        return self.turns


def _asked(function: Function, counter: InductionVariable, before: Block) -> bool:
    """Whether a branch that leads to `before` has asked the loop's question of the start."""
    asked = Folder(function).emit(counter.comparison, BOOL, counter.start, counter.bound)
    if asked.op == "const":
        return bool(asked.constant)
    block = before
    while len(block.preds) == 1:
        below, block = block, block.preds[0]
        told = block.condition
        if told is not None and operation_key(told) == operation_key(asked):
            return block.targets[0] is below
    return False
