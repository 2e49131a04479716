"""Write out several iterations of a loop whose length only the launch knows.

As nvcc does it: NVVM puts four iterations in a row, with what is left over before or after
them; ptxas then puts four such rows in a row where they are small, with rows of eight and
of four for what that leaves. Loops that step by a variable or have another way out stay as they
are.
"""

from __future__ import annotations

import numpy as np

from gpusim.compiler.ir import BOOL, Block, DType, Function, Value, constant
from gpusim.lowering.counter import Counter, Trips, counter_of, emit_trips
from gpusim.lowering.graph import Loop, natural_loops, remove_edge
from gpusim.lowering.ssa import Variable
from gpusim.lowering.unroll import body_size
from gpusim.lowering.unrolling import Unrolling, branch

ROW = 4
# Found by compiling loops with nvcc 13.0 -O3 for sm_90: a body of 43 operations is put in
# rows of four, one of 83 is not; rows of up to ten operations an iteration multiply again.
LARGEST_ROW = 172
LARGEST_TO_MULTIPLY = 40


def unroll_partly(function: Function) -> bool:
    """Unroll innermost loops; return whether there were any."""
    loops = natural_loops(function)
    headers = [o.header for o in loops if not any(other.parent is o for other in loops)]
    changed = False
    for header in headers:
        loop = next(o for o in natural_loops(function) if o.header is header)
        counter = counter_of(loop)
        if counter is not None and _worthwhile(loop):
            _unroll(function, loop, counter)
            changed = True
    return changed


def _worthwhile(loop: Loop) -> bool:
    return body_size(loop) * ROW <= LARGEST_ROW


def _multiplies(loop: Loop) -> bool:
    """Whether ptxas puts rows in rows again."""
    ordered = any(v.op in ("atomic", "fence") for b in loop.blocks for v in b.body)
    return not ordered and body_size(loop) * ROW <= LARGEST_TO_MULTIPLY


def _unroll(function: Function, loop: Loop, counter: Counter) -> None:
    """Replace the loop by rows of copies, with what these leave before or after them."""
    copies = Unrolling(function, loop, counter)
    before, join = copies.before, copies.join
    trips = emit_trips(function, counter, loop.parent, before, ROW)
    enough = copies.compare(before, "ge", trips.back, constant(ROW - 1, counter.count_type))
    remove_edge(before, copies.header)
    first, rest = copies.block(), copies.block()
    # LLVM's choice: what is left over comes last where the counter begins at a constant.
    if counter.start.op == "const":
        branch(before, enough, first, rest)
        _Rows(copies, trips, first, rest).write()
        _write_left_over(copies, trips, rest, join)
    else:
        branch(rest, enough, first, join)
        _Rows(copies, trips, first, join).write()
        _write_left_over(copies, trips, before, rest)
    copies.settle()


def _write_left_over(copies: Unrolling, trips: Trips, here: Block, after: Block) -> None:
    """Write up to three iterations: the loop itself, or ifs where there is a loop around."""
    dtype = copies.counter.count_type
    if copies.loop.parent is None:
        some = copies.compare(here, "ne", trips.extra, constant(0, dtype))
        extra = copies.variable(dtype)
        extra.ends[here] = trips.extra
        branch(here, some, copies.header, after)
        fewer = copies.fewer(extra, copies.header, copies.latch, 1)
        copies.keep(copies.compare(copies.latch, "ne", fewer, constant(0, dtype)), after)
        return
    for done in range(ROW - 1):
        more = copies.compare(here, "ne", trips.extra, constant(done, dtype))
        head, tail = copies.row(1)
        branch(here, more, head, after)
        here = tail
    branch(here, None, after)
    copies.drop()


class _Rows:
    """The rows that run from `first` while four or more iterations are left, then go to `rest`.

    They ask how many are left: a number that is counted down where what is left over comes
    last, else the loop's own question.
    """

    def __init__(self, copies: Unrolling, trips: Trips, first: Block, rest: Block) -> None:
        self.copies = copies
        self.counter = copies.counter
        self.first = first
        self.rest = rest
        self.bound = self.counter.bound
        self.counts = self.counter.start.op == "const" or self.counter.comparison == "ne"
        signed: DType = np.dtype(f"i{self.counter.dtype.itemsize}")
        self.left: Variable = copies.variable(signed)
        if self.counts:
            before = copies.before
            count = copies.emit(before, "sub", self.counter.count_type, trips.count, trips.extra)
            self.left.ends[before] = copies.emit(before, "cast", signed, count)

    def write(self) -> None:
        """Write the rows: of four, or of sixteen, eight and four."""
        copies, first = self.copies, self.first
        if self.counter.start.op == "const":
            copies.hold_constants(first)
        if not _multiplies(copies.loop):
            head, tail = copies.row(ROW)
            branch(first, None, head)
            branch(tail, self._goes_on(head, tail), head, self.rest)
            return
        self._multiply()

    def _multiply(self) -> None:
        """Write what ptxas makes of a small row: it asks whether one of its own rows ran."""
        copies, first = self.copies, self.first
        sixteen, middle, eight, last = (copies.block() for _ in range(4))
        four, end = copies.row(ROW, late=True)
        if self.counts:
            some = self._more_left(first, 0)
            first, unsure = copies.block(), first
            branch(unsure, some, first, four)
        none_yet = copies.variable(BOOL)
        none_yet.ends[first] = self._held(first, is_true=True)
        branch(first, self._more_left(first, 3 * ROW), sixteen, middle)

        head, tail = copies.row(4 * ROW, late=True)
        none_yet.ends[tail] = self._held(sixteen, is_true=False)
        limit = self._limit(sixteen)
        branch(sixteen, None, head)
        branch(tail, self._more_after(head, tail, limit), head, middle)

        branch(middle, self._more_left(middle, ROW), eight, last)
        head, tail = copies.row(2 * ROW, late=True)
        none_yet.ends[tail] = self._held(eight, is_true=False)
        branch(eight, None, head)
        if self.counts:
            copies.fewer(self.left, head, tail, 2 * ROW)
        branch(tail, None, last)

        any_left = copies.read(self._question(last), 0, *self._asked_of(last))
        either = copies.emit(last, "or", BOOL, any_left, any_left)
        branch(last, copies.read(either, 1, none_yet, last), four, self.rest)
        if self.counts:
            branch(end, self._goes_on(four, end), four, self.rest)
        else:
            branch(end, None, self.rest)

    def _held(self, block: Block, *, is_true: bool) -> Value:
        return self.copies.emit(block, "held", BOOL, constant(is_true, BOOL))

    # -- how many iterations are left ------------------------------------------------------

    def _left_type(self, number: int) -> Value:
        assert self.left.dtype is not None
        return constant(number, self.left.dtype)

    def _more_left(self, block: Block, limit: int) -> Value:
        """Ask at the start of `block` whether more than `limit` iterations are left."""
        copies = self.copies
        if self.counts:
            asked = copies.compare(block, "gt", self._left_type(0), self._left_type(limit))
            return copies.read(asked, 0, self.left, block)
        up, dtype = self.counter.step > 0, self.counter.dtype
        left = copies.emit(block, "sub", dtype, self.bound, self.bound)
        copies.read(left, 1 if up else 0, copies.counted, block)
        enough = copies.compare(block, "gt", left, constant(limit * abs(self.counter.step), dtype))
        if dtype.kind != "u":
            return enough
        inside = copies.compare(block, self.counter.comparison, self.bound, self.bound)
        copies.read(inside, 0, copies.counted, block)
        return copies.emit(block, "and", BOOL, inside, enough)

    def _limit(self, block: Block) -> Value | None:
        """Write what the counter is compared with to know whether sixteen more are left."""
        if self.counts:
            return None
        distance = constant(3 * ROW * self.counter.step, self.counter.dtype)
        return self.copies.emit(block, "sub", self.counter.dtype, self.bound, distance)

    def _more_after(self, head: Block, tail: Block, limit: Value | None) -> Value:
        """Ask at the end of a row of sixteen whether to run it again."""
        if limit is not None:
            now = self.copies.counted.ends[tail]
            return self.copies.compare(tail, self.counter.comparison, now, limit)
        fewer = self.copies.fewer(self.left, head, tail, 4 * ROW)
        return self.copies.compare(tail, "gt", fewer, self._left_type(3 * ROW))

    def _goes_on(self, head: Block, tail: Block) -> Value:
        """Ask at the end of a row of four whether any iteration is left."""
        if self.counts:
            fewer = self.copies.fewer(self.left, head, tail, ROW)
            return self.copies.compare(tail, "ne", fewer, self._left_type(0))
        now = self.copies.counted.ends[tail]
        return self.copies.compare(tail, self.counter.comparison, now, self.bound)

    def _question(self, block: Block) -> Value:
        """Write the question whether any iteration is left, its first operand still open."""
        if self.counts:
            return self.copies.compare(block, "ne", self._left_type(0), self._left_type(0))
        return self.copies.compare(block, self.counter.comparison, self.bound, self.bound)

    def _asked_of(self, block: Block) -> tuple[Variable, Block]:
        return (self.left if self.counts else self.copies.counted), block
