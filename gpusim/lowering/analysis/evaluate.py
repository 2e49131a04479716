"""Constant evaluation: an operation has the result of the instruction chosen for it.

So a folded constant cannot differ from a computed value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.compiler.ir import FLOAT64, Value
from gpusim.isa.ops import OPS, Instruction
from gpusim.lowering.choices import CHOICES, Choice, type_class
from gpusim.typing import DType

# Operations that selection writes out in ways of its own; these rows compute the same.
COMPUTES_ALIKE: Mapping[str, Choice] = {
    "cast": Choice(".CAST"),
    "held": Choice("MOV"),
    "idiv": Choice("LIBM", "idiv"),
    "rem": Choice("LIBM", "rem"),
}


def evaluate(op: str, dtype: DType, detail: Any, sources: list[Any]) -> Any:
    """Return the NumPy scalar of `dtype` that `op` gives, None where that is not known."""
    operands = [np.asarray(source) for source in sources]
    if op == "select":
        operands = [*operands[1:], operands[0]]
    choice = _choice(op, detail, operands)
    compute = None if choice is None else OPS[choice.op].evaluate
    if choice is None or compute is None:
        return None
    if choice.zero:
        operands.append(np.zeros_like(operands[0]))
    with np.errstate(all="ignore"):
        result = compute(Instruction(choice.op, dtype=dtype, detail=choice.detail), *operands)
    return np.asarray(result).astype(dtype)[()]


def _choice(op: str, detail: Any, operands: list[Any]) -> Choice | None:
    if op == "math":
        fused = Choice("DFMA" if operands[0].dtype == FLOAT64 else "FFMA")
        return fused if detail == "fma" else Choice("LIBM", detail)
    return COMPUTES_ALIKE.get(op) or CHOICES.get((op, type_class(operands[0].dtype)))


def constant_result(value: Value) -> Any:
    """Return the result of `value` if all its operands are constants, else None."""
    if value.dtype is None or not value.args or value.op == "held":
        return None
    sources = [a.detail for a in value.args]
    if any(a.op != "const" for a in value.args):
        return None
    return evaluate(value.op, value.dtype, value.detail, sources)
