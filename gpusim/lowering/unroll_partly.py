"""Write out several iterations of a loop whose length only the launch knows.

As nvcc does it: NVVM puts four iterations in a row, with what is left over before or after
them; ptxas then puts four such rows in a row where they are small, with rows of eight and
of four for what that leaves. Loops that step by a variable, meet other threads or have
another way out stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.lowering.counter import Counter, counter_of, emit_count
from gpusim.lowering.graph import (
    Loop,
    add_edge,
    clone_region,
    make_preheader,
    natural_loops,
    new_block,
    remove_edge,
    remove_unreachable,
    split_edge,
)
from gpusim.lowering.rotate import CONVERGENT
from gpusim.lowering.ssa import Variable, place_phis, repair
from gpusim.lowering.unroll import body_size

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
            _Unrolling(function, loop, counter).run()
            changed = True
    return changed


def _worthwhile(loop: Loop) -> bool:
    met = any(v.op in CONVERGENT or v.op == "atomic" for b in loop.blocks for v in b.body)
    return not met and body_size(loop) * ROW <= LARGEST_ROW


class _Unrolling:
    """One loop while it is being unrolled.

    First the graph is laid out, with operands still open that depend on how control comes;
    then `Variable`s say what they are.
    """

    def __init__(self, function: Function, loop: Loop, counter: Counter) -> None:
        self.function = function
        self.loop = loop
        self.counter = counter
        self.count_type = counter.count_type
        self.header, (self.latch,) = loop.header, loop.latches
        self.before = make_preheader(function, loop)
        self.join = split_edge(function, self.latch, loop.exits[0][1])
        self.home = {v: b for b in loop.blocks for v in (*b.phis, *b.body)}
        self.copies: dict[Value, dict[Block, Value]] = {v: {b: v} for v, b in self.home.items()}
        at_entry, back = (self.header.preds.index(b) for b in (self.before, self.latch))
        self.following = {phi: phi.args[back] for phi in self.header.phis}
        self.states = {
            phi: Variable(function, phi.dtype, {self.before: phi.args[at_entry]}, phi.line)
            for phi in self.header.phis
        }
        self.header.phis = []
        self.heads: list[tuple[Block, Mapping[Value, Value]]] = []
        self.left = Variable(function, self.count_type, {}, self.header.line)
        self.extra = Variable(function, self.count_type, {}, self.header.line)
        self.open: list[tuple[Value, Variable, Block]] = []
        self.replacements: dict[Value, Value] = {}

    def run(self) -> None:
        """Replace the loop by rows of copies, and by itself for what they leave."""
        before, number = self.before, self._number
        count = emit_count(self.function, self.counter, before)
        extra = self._emit(before, "and", count, number(ROW - 1))
        self.left.ends[before] = self._emit(before, "sub", count, extra)
        self.extra.ends[before] = extra
        enough = self._compare(before, "ge", count, number(ROW))
        remove_edge(before, self.header)
        # LLVM's choice: what is left over comes last where the counter begins at a constant.
        if self.counter.start.op == "const":
            first, rest = self._block(), self._block()
            _branch(before, enough, first, rest)
            self._rows(first, rest)
            some = self._compare(rest, "ne", extra, number(0))
            _branch(rest, some, self.header, self.join)
            self._count_down()
        else:
            self._singles(extra, enough)
            for block in self.loop.blocks:
                for target in block.targets:
                    remove_edge(block, target)
                self.function.blocks.remove(block)
        self._settle()

    def _singles(self, extra: Value, enough: Value) -> None:
        """Write up to three iterations first, each if there is that much left over."""
        first, check = self._block(), self._block()
        here = self.before
        for done in range(ROW - 1):
            more = self._compare(here, "ne", extra, self._number(done))
            head, tail = self._row(1)
            _branch(here, more, head, check)
            here = tail
        _branch(here, None, check)
        _branch(check, enough, first, self.join)
        self._rows(first, self.join)

    def _rows(self, first: Block, rest: Block) -> None:
        """Write the rows that run while four or more iterations are left, then lead to `rest`."""
        if body_size(self.loop) * ROW > LARGEST_TO_MULTIPLY:
            head, tail = self._row(ROW)
            _branch(first, None, head)
            self._repeat(head, tail, "ne", 0, rest)
            return
        middle, last = self._block(), self._block()
        head, tail = self._row(4 * ROW)
        _branch(first, self._compare_left(first, "gt", 3 * ROW), head, middle)
        self._repeat(head, tail, "gt", 3 * ROW, middle)
        head, tail = self._row(2 * ROW)
        _branch(middle, self._compare_left(middle, "gt", ROW), head, last)
        self._fewer(self.left, head, tail, 2 * ROW)
        _branch(tail, None, last)
        head, tail = self._row(ROW)
        _branch(last, self._compare_left(last, "ne", 0), head, rest)
        _branch(tail, None, rest)

    def _repeat(self, head: Block, tail: Block, op: str, limit: int, rest: Block) -> None:
        """Run a row again while the number of iterations left compares so with `limit`."""
        length = 4 * ROW if limit else ROW
        fewer = self._fewer(self.left, head, tail, length)
        _branch(tail, self._compare(tail, op, fewer, self._number(limit)), head, rest)

    def _count_down(self) -> None:
        """Let the original loop run as often as `extra` says."""
        question = self.latch.condition
        fewer = self._fewer(self.extra, self.header, self.latch, 1)
        more = self._compare(self.latch, "ne", fewer, self._number(0))
        for value in self.latch.body:
            if value.op == "source_branch" and value.args[0] is question:
                self.latch.body.remove(value)
                value.args = [more]
                self.latch.body.append(value)
                break
        self.latch.condition = more
        self.heads.append((self.header, {}))
        for phi, state in self.states.items():
            state.ends[self.latch] = self.following[phi]

    def _row(self, length: int) -> tuple[Block, Block]:
        """Copy the body `length` times in a row; return the first block and the last.

        How the last goes on is for the caller to say.
        """
        first: Block | None = None
        tail: Block | None = None
        values: dict[Value, Value] = {}
        for position in range(length):
            past, values = values, {v: Value("phi", v.dtype, line=v.line) for v in self.states}
            blocks = clone_region(self.function, self.loop.blocks, values)
            head, end = blocks[self.header], blocks[self.latch]
            head.preds = []
            remove_edge(end, self.join)
            if position < length - 1:
                _goes_on(end)
            end.condition, end.targets = None, ()
            for value, copy in values.items():
                self.copies[value][blocks[self.home[value]]] = copy
            if tail is None:
                first = head
                self.heads.append((head, values))
            else:
                _branch(tail, None, head)
                for phi, following in self.following.items():
                    self.replacements[values[phi]] = past.get(following, following)
            tail = end
        assert first is not None
        assert tail is not None
        for phi, state in self.states.items():
            state.ends[tail] = values.get(self.following[phi], self.following[phi])
        return first, tail

    def _settle(self) -> None:
        """Fill in what was left open, now that the graph is complete."""
        self._read_after()
        used = self._used_outside()
        for head, values in self.heads:
            for phi, state in self.states.items():
                self.replacements[values.get(phi, phi)] = state.at_start(head)
        for value, variable, block in self.open:
            value.args[0] = variable.at_start(block)
        variables = [*self.states.values(), self.left, self.extra]
        final = place_phis(self.function, variables, self.replacements)
        remove_unreachable(self.function)
        present = set(self.function.blocks)
        repair(
            self.function,
            {
                final(v): {b: final(copy) for b, copy in self.copies[v].items() if b in present}
                for v in used
            },
        )

    def _outside(self) -> list[Block]:
        """Return the blocks that hold no copy of the loop's."""
        copied = {block for where in self.copies.values() for block in where}
        return [b for b in self.function.blocks if b not in copied]

    def _read_after(self) -> None:
        """Let code after the loop see what the next iteration would have seen."""
        outside = {
            following: state.at_start(self.join)
            for following, state in zip(self.following.values(), self.states.values(), strict=True)
            if following in self.home
        }
        for block in self._outside():
            for value in (*block.phis, *block.body):
                value.args = [outside.get(a, a) for a in value.args]
            if block.condition in outside:
                assert block.condition is not None
                block.condition = outside[block.condition]

    def _used_outside(self) -> list[Value]:
        """Return the loop's values that other blocks use."""
        used: dict[Value, None] = {}
        for block in self._outside():
            for value in (*block.phis, *block.body):
                used.update((a, None) for a in value.args if a in self.home)
            if block.condition in self.home:
                assert block.condition is not None
                used[block.condition] = None
        return list(used)

    def _block(self) -> Block:
        return new_block(self.function, self.header.line)

    def _number(self, number: int) -> Value:
        return constant(number, self.count_type)

    def _emit(self, block: Block, op: str, *args: Value) -> Value:
        value = Value(op, self.count_type, list(args), line=block.line)
        block.body.append(value)
        return value

    def _compare(self, block: Block, op: str, *args: Value) -> Value:
        value = Value(op, BOOL, list(args), line=block.line)
        block.body.append(value)
        return value

    def _compare_left(self, block: Block, op: str, limit: int) -> Value:
        """Compare the number of iterations left at the start of `block`."""
        value = self._compare(block, op, self._number(0), self._number(limit))
        self.open.append((value, self.left, block))
        return value

    def _fewer(self, variable: Variable, head: Block, tail: Block, count: int) -> Value:
        """Count `variable` down at the end of `tail` from what it is at the start of `head`."""
        value = self._emit(tail, "sub", self._number(0), self._number(count))
        variable.ends[tail] = value
        self.open.append((value, variable, head))
        return value


def _branch(block: Block, condition: Value | None, *targets: Block) -> None:
    """End `block`; the targets' phis come later."""
    block.condition, block.targets = condition, targets
    for target in targets:
        add_edge(block, target)


def _goes_on(end: Block) -> None:
    """Let the conditional of the source at an iteration's end say that another follows."""
    for value in end.body:
        if value.op == "source_branch" and value.args[0] is end.condition:
            value.args = [constant(True, BOOL)]
