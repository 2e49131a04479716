"""Constant evaluation: what a pure operation gives, with the machine's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import isa
from gpusim.compiler.ir import DType, Value


def _row(op: str, detail: Any = None) -> Callable[..., Any]:
    evaluator = isa.OPS[op].evaluate
    assert evaluator is not None
    instruction = isa.Instruction(op, detail=detail)
    return lambda *sources: evaluator(instruction, *map(np.asarray, sources))


EVALUATORS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "idiv": isa.MATH["idiv"],
    "rem": isa.MATH["rem"],
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": _row("FMNMX", "min"),
    "max": _row("FMNMX", "max"),
    "shl": _row("SHF", "left"),
    "shr": _row("SHF", "right"),
    "neg": np.negative,
    "not": np.bitwise_not,
    "abs": np.abs,
    **isa.COMPARISONS,
    "select": lambda condition, a, b: a if condition else b,
    "popc": _row("POPC"),
    "ffs": _row("FFS"),
    "clz": _row("FLO"),
    "brev": _row("BREV"),
    "held": np.asarray,
}


def evaluate(op: str, dtype: DType, detail: Any, sources: list[Any]) -> Any:
    """Return the NumPy scalar of `dtype` that `op` gives, None where that is not known."""
    with np.errstate(all="ignore"):
        if op == "cast":
            result = isa.convert(np.asarray(sources[0]), dtype)
        elif op == "math" and detail in isa.MATH:
            result = isa.MATH[detail](*sources)
        elif op in EVALUATORS:
            result = EVALUATORS[op](*sources)
        else:
            return None
        return np.asarray(result).astype(dtype)[()]


def constant_result(value: Value) -> Any:
    """Return what `value` gives if all its operands are constants, else None."""
    if value.dtype is None or not value.args or value.op == "held":
        return None
    sources = [a.detail for a in value.args]
    if any(a.op != "const" for a in value.args):
        return None
    return evaluate(value.op, value.dtype, value.detail, sources)
