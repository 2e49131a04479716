"""The context of simplification rules: their operands, and the code they write.

A rule looks at one operation and its operands and returns a value to use instead. Dead values
stay for `dce` to remove. The rules are a part of LLVM's InstCombine: the ones that
show in the machine code of small kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpusim.compiler.ir import Function, Value, constant
from gpusim.lowering.analysis.evaluate import constant_result
from gpusim.typing import DType

Rule = Callable[["Folder", Value], Value | None]


class Folder:
    """One walk over a function: the rewritten body, and the number of uses of each value."""

    def __init__(self, function: Function, rules: Mapping[str, Rule]) -> None:
        self.rules = rules
        self.replacements: dict[Value, Value] = {}
        self.body: list[Value] = []
        self.line = 0
        self.uses: dict[Value, int] = {}
        for value in function.values():
            if not value.operation.describes:
                for arg in value.args:
                    self.uses[arg] = self.uses.get(arg, 0) + 1

    def once(self, value: Value) -> bool:
        """Whether only one operation uses `value`, as far as is known."""
        return self.uses.get(value, 0) <= 1

    def emit(self, op: str, dtype: DType, *args: Value) -> Value:
        """Return `op` of `args`, simplified, written before the current operation."""
        return self.write(Value(op, dtype, list(args), line=self.line))

    def write(self, value: Value) -> Value:
        """Return the simplified `value`, writing it if it is new."""
        found = self.simplify(value)
        if found is None:
            self.body.append(value)
            for arg in value.args:
                self.uses[arg] = self.uses.get(arg, 0) + 1
            return value
        return found

    def simplify(self, value: Value) -> Value | None:
        """Return the value to use instead of `value`, None where it stays."""
        if not value.operation.pure or value.dtype is None:
            return None
        known = constant_result(value)
        if known is not None:
            return constant(known, value.dtype)
        if value.operation.commutative and value.args[0].op == "const":
            value.args = [value.args[1], value.args[0]]
        simplified = self.rules.get(value.op)
        return None if simplified is None else simplified(self, value)

    def replace(self, value: Value, found: Value) -> None:
        """Let `found` stand for `value` from here on; it is either new or `value` used it."""
        self.replacements[value] = found
        others = max(self.uses.get(found, 0) - 1, 0)
        self.uses[found] = others + self.uses.get(value, 0)

    def now(self, value: Value) -> Value:
        """Return the current replacement of `value`."""
        while value in self.replacements:
            value = self.replacements[value]
        return value
