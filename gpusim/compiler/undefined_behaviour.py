"""Checks for behaviour undefined in C, inserted into kernels that are built for checking.

Before a division, a shift or a conversion, and before the use of a variable that some path leaves
unset, stands a `source_check` of whether this lane violates the rule. It is never issued and
changes no result; observers of the machine are told the violating lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.typing import DType

UNSET = "unset-variable"


def ask_about_undefined(function: Function) -> Function:
    """Return the function with checks; it is changed in place."""
    asked = _Asked(function)
    unset = _Unset(function)
    for block in function.blocks:
        body = block.body
        block.body = []
        for value in body:
            if value.op in QUESTIONS:
                rule, question = QUESTIONS[value.op]
                wrong = question(asked, block, value)
                asked.check(block, rule, wrong, value.line)
            for arg in dict.fromkeys(value.args):
                asked.check(block, UNSET, unset.wrong(asked, block, arg), value.line)
            block.body.append(value)
        if block.condition is not None:
            asked.check(block, UNSET, unset.wrong(asked, block, block.condition), block.line)
    function.entry.body[:0] = asked.constants
    return function


class _Asked:
    """Inserts checks; constants stand at the function's beginning."""

    def __init__(self, function: Function) -> None:
        self.constants: list[Value] = []

    def constant(self, number: int | float | bool, dtype: DType) -> Value:
        """Return a constant."""
        made = constant(number, dtype)
        self.constants.append(made)
        return made

    def emit(self, block: Block, op: str, *args: Value) -> Value:
        """Return the truth value of an operation, written at the end of a block so far."""
        made = Value(op, BOOL, list(args), line=args[0].line)
        block.body.append(made)
        return made

    def check(self, block: Block, rule: str, wrong: Value | None, line: int) -> None:
        """Check whether a lane violates a rule; nothing is inserted if none ever does."""
        if wrong is not None:
            block.body.append(Value("source_check", None, [wrong], rule, line))


def _division(asked: _Asked, block: Block, value: Value) -> Value | None:
    """Whether the divisor is 0, or the quotient of signed numbers too large."""
    dividend, divisor = value.args
    dtype = divisor.dtype
    assert dtype is not None
    known = divisor.constant
    if dtype.kind not in "iu" or (known is not None and known not in (0, -1)):
        return None
    wrong = asked.emit(block, "eq", divisor, asked.constant(0, dtype))
    if dtype.kind == "u":
        return wrong
    least = asked.constant(np.iinfo(dtype).min, dtype)
    is_least = asked.emit(block, "eq", dividend, least)
    is_minus_one = asked.emit(block, "eq", divisor, asked.constant(-1, dtype))
    return asked.emit(block, "or", wrong, asked.emit(block, "and", is_least, is_minus_one))


def _shift(asked: _Asked, block: Block, value: Value) -> Value | None:
    """Whether the count is negative, or not below the number of bits."""
    count = value.args[1]
    dtype = count.dtype
    assert dtype is not None
    bits = dtype.itemsize * 8
    known = count.constant
    if known is not None and 0 <= known < bits:
        return None
    wrong = asked.emit(block, "ge", count, asked.constant(bits, dtype))
    if dtype.kind == "u":
        return wrong
    negative = asked.emit(block, "lt", count, asked.constant(0, dtype))
    return asked.emit(block, "or", wrong, negative)


def _conversion(asked: _Asked, block: Block, value: Value) -> Value | None:
    """Whether a floating-point number, cut off at its point, is beyond its integer type."""
    (number,) = value.args
    source, target = number.dtype, value.dtype
    assert source is not None
    assert target is not None
    if source.kind != "f" or target.kind not in "iu":
        return None
    limits = np.iinfo(target)
    below = float(limits.min) - 1
    is_exact = int(source.type(below)) == int(limits.min) - 1
    op, least = ("gt", below) if is_exact else ("ge", float(limits.min))
    high = asked.emit(block, "lt", number, asked.constant(float(limits.max) + 1, source))
    low = asked.emit(block, op, number, asked.constant(least, source))
    return asked.emit(block, "not", asked.emit(block, "and", low, high))


Question = Callable[[_Asked, Block, Value], Value | None]

# The rule that an operation may break, and whether a lane does.
QUESTIONS: Mapping[str, tuple[str, Question]] = {
    "idiv": ("division", _division),
    "rem": ("division", _division),
    "shl": ("shift", _shift),
    "shr": ("shift", _shift),
    "cast": ("cast", _conversion),
}


class _Unset:
    """Variables that some path leaves unset: beside each of their phis a phi of "is set" flags."""

    def __init__(self, function: Function) -> None:
        phis = [(block, phi) for block in function.blocks for phi in list(block.phis)]
        doubtful = _reached_by_undefined([phi for _, phi in phis])
        self._yes, self._no = constant(True, BOOL), constant(False, BOOL)
        function.entry.body[:0] = [self._yes, self._no]
        self._known = {phi: Value("phi", BOOL, line=phi.line) for _, phi in phis if phi in doubtful}
        for block, phi in phis:
            if phi in doubtful:
                self._known[phi].args = [self._is_set(arg) for arg in phi.args]
                block.phis.append(self._known[phi])

    def _is_set(self, value: Value) -> Value:
        if value.op == "undef":
            return self._no
        return self._known.get(value, self._yes)

    def wrong(self, asked: _Asked, block: Block, value: Value) -> Value | None:
        """Return whether a value was never assigned; None if it always was."""
        known = self._is_set(value)
        return None if known is self._yes else asked.emit(block, "not", known)


def _reached_by_undefined(phis: list[Value]) -> set[Value]:
    """Return the phis that may stand for a variable without a value."""
    found: set[Value] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for phi in phis:
            if any(arg.op == "undef" or arg in found for arg in phi.args):
                found.add(phi)
    return found
