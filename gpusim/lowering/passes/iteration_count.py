"""The number of a loop's iterations, written out before the loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.lowering.analysis.algebra import number
from gpusim.lowering.analysis.induction_variables import InductionVariable, recurrence
from gpusim.lowering.analysis.known_bits import zero_bits
from gpusim.lowering.analysis.loops import Loop
from gpusim.lowering.graph import make_preheader
from gpusim.lowering.passes.fold import RULES
from gpusim.lowering.passes.folder import Folder
from gpusim.lowering.passes.gvn import operation_key
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


@dataclass(frozen=True)
class IterationCount:
    """The number of a loop's iterations: `back` is one less, `extra` the remainder of unrolling."""

    count: Value
    back: Value
    extra: Value


def emit_iteration_count(
    function: Function,
    induction: InductionVariable,
    around: Loop | None,
    before: Block,
    factor: int,
) -> IterationCount:
    """Write the number of iterations, at least 1, at the end of `before`, as unsigned integers.

    `around` is the loop around, `factor` the unroll factor, a power of two.
    """
    write = Writer(before, induction.dtype)
    up = induction.step > 0
    bound = induction.bound
    if induction.comparison != "ne" and not _asked(function, induction, before):
        nearest = write.emit("add", induction.start, write.number(1 if up else -1))
        bound = write.emit("max" if up else "min", bound, nearest)
    ends = (bound, induction.start) if up else (induction.start, bound)
    span = _Span(function, around, write, ends)
    counts = Writer(before, induction.count_type)
    stride = abs(induction.step)
    if stride == 1:
        count, back, low = span.less(0), span.less(1), span.rest(factor)
        extra = counts.emit("and", counts.emit("cast", low), counts.number(factor - 1))
        return IterationCount(counts.emit("cast", count), counts.emit("cast", back), extra)
    places = counts.number(stride.bit_length() - 1)
    back = counts.emit("shr", counts.emit("cast", span.less(1)), places)
    count = counts.emit("add", back, counts.number(1))
    return IterationCount(count, back, counts.emit("and", count, counts.number(factor - 1)))


class _Span:
    """How far an induction variable has to go, as LLVM writes it out.

    A span that begins at a variable is written as a sum of its smallest terms. A term that is an
    induction variable of the loop around is written as a multiple of that loop's iterations,
    counted for it.
    """

    def __init__(
        self, function: Function, around: Loop | None, write: Writer, ends: tuple[Value, Value]
    ) -> None:
        self.function = function
        self.around = around
        self.write = write
        self.ends = ends
        self.iterations: Value | None = None
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

    def rest(self, factor: int) -> Value:
        """Write something with the same rest as the span in a division by `factor`."""
        if not self.anew:
            return self.less(0)
        return self._written(self.whole, factor)

    def _written(self, wanted: Linear, modulus: int = 0) -> Value:
        fixed, moving = Linear(wanted.constant), Linear()
        for term, factor in wanted.factors.items():
            moves = self.steps.get(term)
            if moves is None:
                fixed = fixed.plus(Linear(0, {term: factor}))
            else:
                fixed = fixed.plus(linear(moves[0]), factor)
                moving = moving.plus(Linear(0, {moves[1]: 1}), factor)
        if modulus:
            fixed, moving = fixed.without_multiples(modulus), moving.without_multiples(modulus)
        if not moving.factors:
            return self.write.total(fixed)
        first = self._writer_of(fixed).total(fixed)
        distance = self.write.emit("mul", self._iterations_around(), self.write.total(moving))
        return self.write.emit("add", distance, first)

    def _writer_of(self, fixed: Linear) -> Writer:
        """Return where to write a sum: before the loop around, if it does not change there."""
        assert self.around is not None
        inside = {v for b in self.around.blocks for v in (*b.phis, *b.body)}
        if not inside.isdisjoint(fixed.factors):
            return self.write
        return Writer(make_preheader(self.function, self.around), self.write.dtype)

    def _iterations_around(self) -> Value:
        """Return the number of iterations that the loop around has made."""
        if self.iterations is None:
            assert self.around is not None
            header, (latch,) = self.around.header, self.around.latches
            one = self.write.number(1)
            iterations = Value("phi", self.write.dtype, line=header.line)
            following = Value("add", self.write.dtype, [iterations, one], line=latch.line)
            zero = self.write.number(0)
            iterations.args = [following if p is latch else zero for p in header.preds]
            header.phis.append(iterations)
            latch.body.append(following)
            self.iterations = iterations
        return self.iterations


def _asked(function: Function, induction: InductionVariable, before: Block) -> bool:
    """Whether a branch that leads to `before` has compared the start as the loop compares."""
    asked = Folder(function, RULES).emit(
        induction.comparison, BOOL, induction.start, induction.bound
    )
    if asked.op == "const":
        return bool(asked.constant)
    block = before
    while len(block.preds) == 1:
        below, block = block, block.preds[0]
        decided_on = block.condition
        if decided_on is not None and operation_key(decided_on) == operation_key(asked):
            return block.targets[0] is below
    return False


# So LLVM's scalar evolution sees the number of a loop's iterations, and not as the values that the
# source happens to name.
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
