"""Copies of a loop's body, laid out one after the other, for unrolling.

First the graph is laid out, with operands still open that depend on the path of control; then
`Variable`s resolve them.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.lowering.analysis.induction_variables import InductionVariable
from gpusim.lowering.analysis.loops import Loop
from gpusim.lowering.graph import (
    add_edge,
    clone_region,
    make_preheader,
    new_block,
    remove_edge,
    remove_unreachable,
    split_edge,
)
from gpusim.lowering.passes.ssa_repair import Variable, insert_phis, repair
from gpusim.typing import DType


class LoopCopies:
    """The loop, the copies made so far, and the values of the loop's variables at their ends."""

    def __init__(self, function: Function, loop: Loop, induction: InductionVariable) -> None:
        self.function = function
        self.loop = loop
        self.induction = induction
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
        self.counted = self.states[induction.phi]
        self.header.phis = []
        self.others: list[Variable] = []
        self.heads: list[tuple[Block, Mapping[Value, Value]]] = []
        self.open: list[tuple[Value, int, Variable, Block]] = []
        self.replacements: dict[Value, Value] = {}

    # -- blocks and their content ----------------------------------------------------------

    def block(self) -> Block:
        """Return a new block."""
        return new_block(self.function, self.header.line)

    def variable(self, dtype: DType) -> Variable:
        """Return a new variable."""
        made = Variable(self.function, dtype, {}, self.header.line)
        self.others.append(made)
        return made

    def emit(self, block: Block, op: str, dtype: DType, *args: Value) -> Value:
        """Write an operation at the end of a block."""
        value = Value(op, dtype, list(args), line=block.line)
        block.body.append(value)
        return value

    def compare(self, block: Block, op: str, *args: Value) -> Value:
        """Write a comparison at the end of a block."""
        return self.emit(block, op, BOOL, *args)

    def read(self, value: Value, position: int, variable: Variable, block: Block) -> Value:
        """Let an operand of `value` be the variable's value at the start of `block`."""
        self.open.append((value, position, variable, block))
        return value

    def fewer(self, variable: Variable, head: Block, tail: Block, count: int) -> Value:
        """Count `variable` down at the end of `tail` from its value at the start of `head`."""
        assert variable.dtype is not None
        less = constant(count, variable.dtype)
        value = self.emit(tail, "sub", variable.dtype, less, less)
        variable.ends[tail] = value
        return self.read(value, 0, variable, head)

    def hold_constants(self, block: Block) -> None:
        """Put into registers, in `block`, the start values of the loop's variables.

        Only the block before the loop leads to `block`.
        """
        for state in self.states.values():
            start = state.ends[self.before]
            if start.op == "const" and start.dtype is not None:
                state.ends[block] = self.emit(block, "held", start.dtype, start)

    # -- copies of the loop ----------------------------------------------------------------

    def unrolled(self, length: int, *, late: bool = False) -> tuple[Block, Block]:
        """Copy the body `length` times, one after the other; return the first block and the last.

        How the last goes on is for the caller to say.
        """
        first: Block | None = None
        tail: Block | None = None
        values: dict[Value, Value] = {}
        for position in range(length):
            past, values = values, {v: Value("phi", v.dtype, line=v.line) for v in self.states}
            blocks = clone_region(self.function, self.loop.blocks, values)
            for copy in blocks.values():
                copy.late = late
            head, end = blocks[self.header], blocks[self.latch]
            head.preds = []
            remove_edge(end, self.join)
            if position < length - 1:
                _goes_on(end)
            end.condition, end.targets = None, ()
            for value, twin in values.items():
                self.copies[value][blocks[self.home[value]]] = twin
            if tail is None:
                first = head
                self.heads.append((head, values))
            else:
                branch(tail, None, head)
                for phi, following in self.following.items():
                    self.replacements[values[phi]] = past.get(following, following)
            tail = end
        assert first is not None
        assert tail is not None
        for phi, state in self.states.items():
            state.ends[tail] = values.get(self.following[phi], self.following[phi])
        return first, tail

    def keep(self, question: Value, after: Block) -> None:
        """Let the loop itself go on while `question` says so, and then lead to `after`."""
        asked = self.latch.condition
        for value in self.latch.body:
            if value.op == "source_branch" and value.args[0] is asked:
                self.latch.body.remove(value)
                value.args = [question]
                self.latch.body.append(value)
                break
        for target in self.latch.targets:
            remove_edge(self.latch, target)
        branch(self.latch, question, self.header, after)
        self.heads.append((self.header, {}))
        for phi, state in self.states.items():
            state.ends[self.latch] = self.following[phi]

    def drop(self) -> None:
        """Remove the loop itself."""
        for block in self.loop.blocks:
            for target in block.targets:
                remove_edge(block, target)
            self.function.blocks.remove(block)

    # -- open operands ---------------------------------------------------------------------

    def settle(self) -> None:
        """Resolve open operands, now that the graph is complete."""
        self._read_after()
        used = self._used_outside()
        for head, values in self.heads:
            for phi, state in self.states.items():
                self.replacements[values.get(phi, phi)] = state.at_start(head)
        for value, position, variable, block in self.open:
            value.args[position] = variable.at_start(block)
        variables = [*self.states.values(), *self.others]
        final = insert_phis(self.function, variables, self.replacements)
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
        """Let code after the loop use the values of the next iteration."""
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


def branch(block: Block, condition: Value | None, *targets: Block) -> None:
    """End `block`; the targets' phis come later."""
    block.condition, block.targets = condition, targets
    for target in targets:
        add_edge(block, target)


def _goes_on(end: Block) -> None:
    """Mark that another iteration follows, in the source's conditional at an iteration's end."""
    for value in end.body:
        if value.op == "source_branch" and value.args[0] is end.condition:
            value.args = [constant(True, BOOL)]
