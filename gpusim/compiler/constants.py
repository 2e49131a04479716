"""Compile-time constants: numbers in a kernel's source, its globals and its closure.

Python numbers fold as C computes with them, in integers of any size.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.compiler.builder import Builder
from gpusim.compiler.types import Number

# Of an integer constant: far beyond any use, and a bound on the time of folding.
MOST_BITS = 4096


def _quotient(a: Number, b: Number) -> Number:
    """Divide as `//` does in a kernel: integers toward zero, floats toward minus infinity."""
    if isinstance(a, float) or isinstance(b, float):
        return a // b
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def _remainder(a: Number, b: Number) -> Number:
    """Return the remainder of `//`."""
    return a % b if isinstance(a, float) or isinstance(b, float) else a - b * _quotient(a, b)


FOLD: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "idiv": _quotient,
    "rem": _remainder,
    "div": operator.truediv,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def fold(builder: Builder, op: str, a: Number, b: Number, node: ast.AST) -> Number:
    """Return the folded result of two constants; KernelSourceError if it is no number."""
    if op in ("div", "idiv", "rem") and b == 0:
        raise builder.error("division by the constant 0", node)
    try:
        if _bits_needed(op, a, b) > MOST_BITS:
            raise builder.error(f"these constants make a number of over {MOST_BITS} bits", node)
        result = FOLD[op](a, b)
    except (ArithmeticError, ValueError) as reason:
        raise builder.error(f"these constants have no such value: {reason}", node) from None
    if isinstance(result, complex):
        raise builder.error("this power of a negative constant is not a real number", node)
    known: Number = result
    return known


def _bits_needed(op: str, a: Number, b: Number) -> int:
    """Return a bound of the bits that two integers' result takes, where it may be large."""
    if isinstance(a, float) or isinstance(b, float):
        return 0
    size = abs(a).bit_length()
    if op == "pow":
        return size * b if size > 1 else size
    return size + {"shl": b, "mul": abs(b).bit_length()}.get(op, 0) if a else 0


def static(builder: Builder, node: ast.expr) -> Any:
    """Return the compile-time object that a dotted name means, None where it is none."""
    if isinstance(node, ast.Name):
        frame = builder.frame
        if node.id in frame.bindings:
            return frame.bindings[node.id]
        if node.id in frame.source.assigned or node.id in frame.source.parameters:
            return None
        try:
            return frame.source.lookup(node.id)
        except KeyError:
            return None
    if isinstance(node, ast.Attribute):
        owner = static(builder, node.value)
        try:
            return None if owner is None else attribute_of(owner, node.attr)
        except AttributeError:
            return None
    return None


def attribute_of(owner: Any, name: str) -> Any:
    """Return an attribute of an object of the source, as `getattr` does.

    An object of the user's own may raise anything; then it has no such attribute.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        raise
    except BaseException as error:
        raise AttributeError(f"{name}: {type(error).__name__}") from None


def static_number(builder: Builder, node: ast.expr) -> Number | None:
    """Return the number that an expression of compile-time constants has, None for others."""
    known = builder.frame.known
    if node not in known:
        known[node] = _static_number(builder, node)
    return known[node]


def _static_number(builder: Builder, node: ast.expr) -> Number | None:
    value: Any = None
    if isinstance(node, ast.Constant):
        value = node.value
    elif isinstance(node, ast.Name | ast.Attribute):
        value = static(builder, node)
        value = value.item() if isinstance(value, np.generic) else value
    elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp):
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        if all(static_number(builder, part) is not None for part in parts):
            value = builder.expression(node)
    return value if isinstance(value, bool | int | float) else None
