"""How often a loop runs, as something to compute before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.compiler.ir import BOOL, Block, DType, Function, Value, constant
from gpusim.lowering.fold import Folder, number
from gpusim.lowering.graph import Loop
from gpusim.lowering.number import operation_key


@dataclass(frozen=True)
class Counter:
    """A value that goes from `start` by `step` while `comparison` with `bound` holds.

    The loop asks at its end, about the next value, and goes on where the answer is yes.
    """

    start: Value
    step: int
    comparison: str
    bound: Value

    @property
    def count_type(self) -> DType:
        """The unsigned type of the counter's width."""
        assert self.start.dtype is not None
        dtype: DType = np.dtype(f"u{self.start.dtype.itemsize}")
        return dtype


def counter_of(loop: Loop) -> Counter | None:
    """Return the counter that alone decides when the loop ends, None where there is none.

    Its step is a constant power of two, up or down: other counts cost a division.
    """
    if not len(loop.latches) == len(loop.exits) == len(loop.entering) == 1:
        return None
    (latch,), header = loop.latches, loop.header
    condition = latch.condition
    if condition is None or latch.targets[0] is not header or loop.exits[0][0] is not latch:
        return None
    inside = {v for b in loop.blocks for v in (*b.phis, *b.body)}
    if condition.op not in ("lt", "gt", "ne") or condition.args[1] in inside:
        return None
    following = condition.args[0]
    if following.op != "add" or following.args[0] not in header.phis:
        return None
    phi, step = following.args[0], _signed(following.args[1])
    if step is None or phi.args[header.preds.index(latch)] is not following:
        return None
    ends = {"lt": step > 0, "gt": step < 0, "ne": abs(step) == 1}[condition.op]
    if not ends or abs(step) & (abs(step) - 1):
        return None
    start = phi.args[header.preds.index(loop.entering[0])]
    return Counter(start, step, condition.op, condition.args[1])


def _signed(value: Value) -> int | None:
    step = number(value)
    if step is None or value.dtype is None:
        return None
    half = 1 << (value.dtype.itemsize * 8 - 1)
    return (step + half) % (2 * half) - half


def emit_count(function: Function, counter: Counter, before: Block) -> Value:
    """Write the number of iterations, at least 1, at the end of `before`; it is unsigned."""
    start, bound, dtype = counter.start, counter.bound, counter.start.dtype
    assert dtype is not None

    def emit(op: str, result: DType, *args: Value) -> Value:
        value = Value(op, result, list(args), line=before.line)
        before.body.append(value)
        return value

    up = counter.step > 0
    if counter.comparison != "ne" and not _asked(function, counter, before):
        nearest = emit("add", dtype, start, constant(1 if up else -1, dtype))
        bound = emit("max" if up else "min", dtype, bound, nearest)
    span = emit("sub", dtype, *((bound, start) if up else (start, bound)))
    span = emit("cast", counter.count_type, span)
    stride = abs(counter.step)
    if stride == 1:
        return span
    span = emit("add", counter.count_type, span, constant(stride - 1, counter.count_type))
    places = constant(stride.bit_length() - 1, counter.count_type)
    return emit("shr", counter.count_type, span, places)


def _asked(function: Function, counter: Counter, before: Block) -> bool:
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
