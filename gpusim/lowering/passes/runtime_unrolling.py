"""Runtime loop unrolling: several iterations at once of a loop with a count known at run time.

As nvcc does it: NVVM unrolls by a factor of four, with a remainder loop before or after;
ptxas then unrolls small bodies by four again, with bodies of eight and of four iterations for
the remainder. Loops that step by a variable or have another exit stay as they are.
"""

from __future__ import annotations

import numpy as np

from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.lowering.analysis.induction_variables import InductionVariable, induction_variable
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.graph import remove_edge
from gpusim.lowering.passes.full_unrolling import body_size
from gpusim.lowering.passes.iteration_count import IterationCount, emit_iteration_count
from gpusim.lowering.passes.loop_copies import LoopCopies, branch
from gpusim.typing import DType

FACTOR = 4
# Found by compiling loops with nvcc 13.0 -O3 for sm_90: a body of 43 operations is unrolled by
# four, one of 83 is not; bodies of up to ten operations an iteration are unrolled again.
LARGEST_UNROLLED = 172
LARGEST_TO_UNROLL_AGAIN = 40


def runtime_unrolling(function: Function) -> bool:
    """Unroll innermost loops; return whether there were any."""
    loops = natural_loops(function)
    headers = [o.header for o in loops if not any(other.parent is o for other in loops)]
    changed = False
    for header in headers:
        loop = next(o for o in natural_loops(function) if o.header is header)
        induction = induction_variable(loop)
        if induction is not None and _worthwhile(loop):
            _unroll(function, loop, induction)
            changed = True
    return changed


def _worthwhile(loop: Loop) -> bool:
    return body_size(loop) * FACTOR <= LARGEST_UNROLLED


def _unrolls_again(loop: Loop) -> bool:
    """Whether ptxas unrolls an unrolled body again."""
    ordered = any(
        v.operation.access == "atomic" or v.op == "fence" for b in loop.blocks for v in b.body
    )
    return not ordered and body_size(loop) * FACTOR <= LARGEST_TO_UNROLL_AGAIN


def _unroll(function: Function, loop: Loop, induction: InductionVariable) -> None:
    """Replace the loop by unrolled bodies, with the remainder before or after them."""
    copies = LoopCopies(function, loop, induction)
    before, join = copies.before, copies.join
    iterations = emit_iteration_count(function, induction, loop.parent, before, FACTOR)
    enough = copies.compare(
        before, "ge", iterations.back, constant(FACTOR - 1, induction.count_type)
    )
    remove_edge(before, copies.header)
    first, rest = copies.block(), copies.block()
    # LLVM's choice: the remainder comes last if the variable begins at a constant.
    if induction.start.op == "const":
        branch(before, enough, first, rest)
        _write_unrolled(copies, iterations, first, rest)
        _write_left_over(copies, iterations, rest, join)
    else:
        branch(rest, enough, first, join)
        _write_unrolled(copies, iterations, first, join)
        _write_left_over(copies, iterations, before, rest)
    copies.settle()


def _write_left_over(
    copies: LoopCopies, iterations: IterationCount, here: Block, after: Block
) -> None:
    """Write up to three remaining iterations: the loop itself, or ifs within an outer loop."""
    dtype = copies.induction.count_type
    if copies.loop.parent is None:
        some = copies.compare(here, "ne", iterations.extra, constant(0, dtype))
        extra = copies.variable(dtype)
        extra.ends[here] = iterations.extra
        branch(here, some, copies.header, after)
        fewer = copies.fewer(extra, copies.header, copies.latch, 1)
        copies.keep(copies.compare(copies.latch, "ne", fewer, constant(0, dtype)), after)
        return
    for done in range(FACTOR - 1):
        more = copies.compare(here, "ne", iterations.extra, constant(done, dtype))
        head, tail = copies.unrolled(1)
        branch(here, more, head, after)
        here = tail
    branch(here, None, after)
    copies.drop()


class _Countdown:
    """Unrolled bodies test the number of remaining iterations.

    ptxas computes with any number, also below 0.
    """

    may_be_any = True

    def __init__(self, copies: LoopCopies, iterations: IterationCount) -> None:
        self.copies = copies
        before, induction = copies.before, copies.induction
        self.dtype: DType = np.dtype(f"i{induction.dtype.itemsize}")
        self.left = copies.variable(self.dtype)
        count = copies.emit(before, "sub", induction.count_type, iterations.count, iterations.extra)
        self.left.ends[before] = copies.emit(before, "cast", self.dtype, count)

    def more(self, block: Block, limit: int) -> Value:
        """Ask at the start of `block` whether more than `limit` iterations are left."""
        return self._asked(block, "gt", limit)

    def some(self, block: Block) -> Value:
        """Ask at the start of `block` whether any iteration is left."""
        return self._asked(block, "ne", 0)

    def before_body(self, block: Block) -> None:
        """Compute nothing before a body that runs again and again."""

    def after_body(self, head: Block, tail: Block, length: int) -> Value:
        """Ask at the end of a body whether it can run again."""
        fewer = self.copies.fewer(self.left, head, tail, length)
        op, limit = ("ne", 0) if length == FACTOR else ("gt", length - FACTOR)
        return self.copies.compare(tail, op, fewer, constant(limit, self.dtype))

    def after_one(self, head: Block, tail: Block, length: int) -> None:
        """Count at the end of a body that runs once."""
        self.copies.fewer(self.left, head, tail, length)

    def _asked(self, block: Block, op: str, limit: int) -> Value:
        zero = constant(0, self.dtype)
        asked = self.copies.compare(block, op, zero, constant(limit, self.dtype))
        return self.copies.read(asked, 0, self.left, block)


class _OwnCondition:
    """Unrolled bodies test the loop's own condition: its variable compared with its bound."""

    may_be_any = False

    def __init__(self, copies: LoopCopies) -> None:
        self.copies = copies
        self.induction = copies.induction
        self.dtype = copies.induction.dtype
        self.bound = copies.induction.bound
        self.limit = self.bound

    def more(self, block: Block, limit: int) -> Value:
        """Ask at the start of `block` whether more than `limit` iterations are left."""
        copies, step = self.copies, self.induction.step
        left = copies.emit(block, "sub", self.dtype, self.bound, self.bound)
        copies.read(left, 1 if step > 0 else 0, copies.counted, block)
        enough = copies.compare(block, "gt", left, constant(limit * abs(step), self.dtype))
        if self.dtype.kind != "u":
            return enough
        return copies.emit(block, "and", BOOL, self.some(block), enough)

    def some(self, block: Block) -> Value:
        """Ask at the start of `block` whether any iteration is left."""
        asked = self._compared(block, self.bound, self.bound)
        return self.copies.read(asked, 0, self.copies.counted, block)

    def before_body(self, block: Block) -> None:
        """Compute how far the variable may be so that a body of sixteen can run again."""
        distance = constant(3 * FACTOR * self.induction.step, self.dtype)
        self.limit = self.copies.emit(block, "sub", self.dtype, self.bound, distance)

    def after_body(self, _: Block, tail: Block, length: int) -> Value:
        """Ask at the end of a body whether it can run again."""
        limit = self.bound if length == FACTOR else self.limit
        return self._compared(tail, self.copies.counted.ends[tail], limit)

    def after_one(self, head: Block, tail: Block, length: int) -> None:
        """Count nothing at the end of a body that runs once: the variable itself does."""

    def _compared(self, block: Block, now: Value, limit: Value) -> Value:
        return self.copies.compare(block, self.induction.comparison, now, limit)


def _write_unrolled(
    copies: LoopCopies, iterations: IterationCount, first: Block, rest: Block
) -> None:
    """Write the bodies that run from `first` while four or more are left, then go to `rest`."""
    from_constant = copies.induction.start.op == "const"
    if from_constant:
        copies.hold_constants(first)
    counts = from_constant or copies.induction.comparison == "ne"
    ask = _Countdown(copies, iterations) if counts else _OwnCondition(copies)
    if _unrolls_again(copies.loop):
        _unroll_again(copies, ask, first, rest)
        return
    head, tail = copies.unrolled(FACTOR)
    branch(first, None, head)
    branch(tail, ask.after_body(head, tail, FACTOR), head, rest)


def _unroll_again(
    copies: LoopCopies, ask: _Countdown | _OwnCondition, first: Block, rest: Block
) -> None:
    """Write bodies of sixteen, eight and four iterations, as ptxas does.

    It remembers whether none of its own has run, and then lets the one of four run anyway.
    """
    sixteen, middle, eight, last = (copies.block() for _ in range(4))
    four, end = copies.unrolled(FACTOR, late=True)
    if ask.may_be_any:
        first, unsure = copies.block(), first
        branch(unsure, ask.more(unsure, 0), first, four)
    none_yet = copies.variable(BOOL)
    none_yet.ends[first] = copies.emit(first, "held", BOOL, constant(True, BOOL))
    branch(first, ask.more(first, 3 * FACTOR), sixteen, middle)

    head, tail = copies.unrolled(4 * FACTOR, late=True)
    none_yet.ends[tail] = copies.emit(sixteen, "held", BOOL, constant(False, BOOL))
    ask.before_body(sixteen)
    branch(sixteen, None, head)
    branch(tail, ask.after_body(head, tail, 4 * FACTOR), head, middle)

    branch(middle, ask.more(middle, FACTOR), eight, last)
    head, tail = copies.unrolled(2 * FACTOR, late=True)
    none_yet.ends[tail] = copies.emit(eight, "held", BOOL, constant(False, BOOL))
    branch(eight, None, head)
    ask.after_one(head, tail, 2 * FACTOR)
    branch(tail, None, last)

    some = ask.some(last)
    either = copies.emit(last, "or", BOOL, some, some)
    branch(last, copies.read(either, 1, none_yet, last), four, rest)
    if ask.may_be_any:
        branch(end, ask.after_body(four, end, FACTOR), four, rest)
    else:
        branch(end, None, rest)
