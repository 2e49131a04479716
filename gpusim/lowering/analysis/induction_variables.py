"""Induction variables: values that a loop advances by the same step in every iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.compiler.ir import Value
from gpusim.lowering.analysis.algebra import number
from gpusim.lowering.analysis.loops import Loop
from gpusim.typing import DType


@dataclass(frozen=True)
class InductionVariable:
    """A value that goes from `start` by `step` while `comparison` with `bound` holds.

    The loop asks at its end, about the next value, and continues if it holds. `phi`
    is the value during an iteration.
    """

    phi: Value
    start: Value
    step: int
    comparison: str
    bound: Value

    @property
    def dtype(self) -> DType:
        """The variable's type."""
        assert self.start.dtype is not None
        return self.start.dtype

    @property
    def count_type(self) -> DType:
        """The unsigned type of the variable's width."""
        dtype: DType = np.dtype(f"u{self.dtype.itemsize}")
        return dtype


def induction_variable(loop: Loop) -> InductionVariable | None:
    """Return the variable that alone controls the loop's exit, None if there is none.

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
    return InductionVariable(phi, start, step, condition.op, condition.args[1])


def _signed(value: Value) -> int | None:
    step = number(value)
    if step is None or value.dtype is None:
        return None
    half = 1 << (value.dtype.itemsize * 8 - 1)
    return (step + half) % (2 * half) - half


def recurrence(loop: Loop, value: Value) -> tuple[Value, Value] | None:
    """Return start and step of an induction variable, None if they are 0 and 1."""
    header = loop.header
    if value not in header.phis or len(loop.latches) != 1 or len(loop.entering) != 1:
        return None
    back = header.preds.index(loop.latches[0])
    first, following = value.args[1 - back], value.args[back]
    if following.op != "add" or value not in following.args:
        return None
    step = following.args[1] if following.args[0] is value else following.args[0]
    inside = {v for b in loop.blocks for v in (*b.phis, *b.body)}
    if step in inside or (number(first) == 0 and number(step) == 1):
        return None
    return first, step
