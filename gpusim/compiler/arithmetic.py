"""Arithmetic and comparisons: operators of the source, computed in C's types."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from gpusim.compiler.builder import Builder, Operand, common_type, type_of
from gpusim.compiler.constants import fold, static_number
from gpusim.compiler.ir import BOOL, FLOAT64, Value
from gpusim.compiler.types import promoted
from gpusim.typing import DType

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "idiv",
    ast.Mod: "rem",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
# The operation, if any, and its function for constants.
UNARY: Mapping[type[ast.unaryop], tuple[str | None, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.Invert: ("not", lambda number: ~int(number)),
    ast.UAdd: (None, operator.pos),
}
BITS = {"and", "or", "xor"}
SHIFTS = {"shl", "shr"}
UNROLLED_POWERS = range(1, 9)
# Operators that are no operations of the machine, by the kind of type.
FUNCTIONS: Mapping[tuple[str, str], str] = {
    ("pow", "f"): "pow",
    ("pow", "i"): "ipow",
    ("pow", "u"): "ipow",
    ("idiv", "f"): "floordiv",
    ("rem", "f"): "floormod",
}


def binary_operation(builder: Builder, node: ast.BinOp) -> Operand:
    """Return an operator of two expressions.

    A long sum leans to the left; it is built from its first term on, however long it is.
    """
    chain = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    result = builder.expression(chain[-1].left)
    for part in reversed(chain):
        right = builder.expression(part.right)
        result = binary(builder, BINARY[type(part.op)], result, right, part)
    made: Operand = result
    return made


def binary(builder: Builder, op: str, left: Any, right: Any, node: ast.AST) -> Operand:
    """Return an operation of two numbers, in their common type."""
    a, b = builder.number(left, node), builder.number(right, node)
    kinds = type_of(a).kind + type_of(b).kind
    if op in BITS | SHIFTS and "f" in kinds:
        raise builder.error("bits and shifts need integers", node)
    if not isinstance(a, Value) and not isinstance(b, Value):
        return fold(builder, op, a, b, node)
    if op == "pow" and isinstance(a, Value) and isinstance(b, int) and b in UNROLLED_POWERS:
        return _product(builder, a, b, node)
    if op == "div":
        dtype = floating(common_type(a, b))
    elif op in SHIFTS:
        dtype = common_type(a)
    elif op in BITS and kinds == "bb":
        dtype = BOOL
    else:
        dtype = common_type(a, b)
    return _operation(builder, op, dtype, [builder.as_type(a, dtype), builder.as_type(b, dtype)])


def floating(dtype: DType) -> DType:
    """Return a floating type itself, float64 for integers."""
    return dtype if dtype.kind == "f" else FLOAT64


def _operation(builder: Builder, op: str, dtype: DType, args: list[Value]) -> Value:
    emit = builder.graph.emit
    function = FUNCTIONS.get((op, dtype.kind))
    return emit(op, dtype, args) if function is None else emit("math", dtype, args, function)


def _product(builder: Builder, base: Value, count: int, node: ast.AST) -> Operand:
    factor = builder.as_type(base, promoted(type_of(base)))
    result: Operand = factor
    for _ in range(count - 1):
        result = binary(builder, "mul", result, factor, node)
    return result


def unary_operation(builder: Builder, node: ast.UnaryOp) -> Operand:
    """Return an operator of one expression."""
    if isinstance(node.op, ast.Not):
        known = static_number(builder, node.operand)
        if known is not None:
            return not known
        condition = builder.truth(builder.number(builder.expression(node.operand), node.operand))
        return builder.graph.emit("not", BOOL, [condition])
    operand = builder.number(builder.expression(node.operand), node)
    if isinstance(node.op, ast.Invert) and type_of(operand).kind == "f":
        raise builder.error("~ needs an integer", node)
    op, of_constant = UNARY[type(node.op)]
    if not isinstance(operand, Value):
        constant: Operand = of_constant(operand)
        return constant
    dtype = promoted(type_of(operand))
    value = builder.as_type(operand, dtype)
    return builder.graph.emit(op, dtype, [value]) if op else value


def compare(
    builder: Builder, comparison: ast.cmpop, left: Operand, right: Operand, node: ast.AST
) -> Operand:
    """Return the result of comparing two numbers, folded if both are constants."""
    op = COMPARE[type(comparison)]
    if not isinstance(left, Value) and not isinstance(right, Value):
        return fold(builder, op, left, right, node)
    dtype = common_type(left, right)
    args = [builder.as_type(number, dtype) for number in (left, right)]
    return builder.graph.emit(op, BOOL, args)


def both(builder: Builder, a: Operand, b: Operand) -> Operand:
    """Return whether two conditions hold."""
    if not isinstance(a, Value) and not isinstance(b, Value):
        return bool(a and b)
    return builder.graph.emit("and", BOOL, [builder.truth(a), builder.truth(b)])
