"""Conditions: branches on them, `and` and `or` with short circuits, conditional expressions."""

from __future__ import annotations

import ast
from typing import Any

from gpusim.compiler.arithmetic import both, compare
from gpusim.compiler.builder import Builder, Operand, common_type, type_of
from gpusim.compiler.constants import static_number
from gpusim.compiler.ir import BOOL, Block, Value

# Expressions that may be evaluated speculatively, without a short circuit: no loads, no calls,
# and no divisions, which are long.
SIMPLE = (
    ast.Name, ast.Constant, ast.Attribute, ast.Compare, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
LONG = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


def static_condition(builder: Builder, node: ast.expr) -> bool | None:
    """Return a condition's value if it is a compile-time constant."""
    value = static_number(builder, node)
    return None if value is None else bool(value)


def condition(builder: Builder, node: ast.expr) -> Value:
    """Return an expression as a truth value."""
    return builder.truth(_number(builder, node))


def branch(builder: Builder, node: ast.expr, if_true: Block, if_false: Block) -> None:
    """End the current block by a condition, with `and`, `or` and `not` as short circuits."""
    builder.mark(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        branch(builder, node.operand, if_false, if_true)
    elif isinstance(node, ast.BoolOp) and not _is_simple(node.values[1:]):
        is_and = isinstance(node.op, ast.And)
        for part in node.values[:-1]:
            following = builder.graph.new_block()
            paths = (following, if_false) if is_and else (if_true, following)
            branch(builder, part, *paths)
            builder.graph.enter(following)
        branch(builder, node.values[-1], if_true, if_false)
    elif isinstance(node, ast.Compare) and not _is_evaluated_at_once(builder, node):
        _branch_on_chain(builder, node, if_true, if_false)
    else:
        decide(builder, condition(builder, node), if_true, if_false)


def _branch_on_chain(builder: Builder, node: ast.Compare, if_true: Block, if_false: Block) -> None:
    """End the current block by a chain of comparisons; the first that fails ends the chain."""
    left = _number(builder, node.left)
    for comparison, operand in zip(node.ops, node.comparators, strict=True):
        right = _number(builder, operand)
        test = builder.truth(compare(builder, comparison, left, right, node))
        is_last = operand is node.comparators[-1]
        following = if_true if is_last else builder.graph.new_block()
        decide(builder, test, following, if_false)
        if not is_last:
            builder.graph.enter(following)
        left = right


def _number(builder: Builder, node: ast.expr) -> Operand:
    return builder.number(builder.expression(node), node)


def comparisons(builder: Builder, node: ast.Compare) -> Operand:
    """Return whether all comparisons of a chain hold."""
    if not _is_evaluated_at_once(builder, node):
        return _chosen(builder, node, True, False, node)
    left = _number(builder, node.left)
    result: Operand | None = None
    for comparison, operand in zip(node.ops, node.comparators, strict=True):
        right = _number(builder, operand)
        one = compare(builder, comparison, left, right, node)
        result = one if result is None else both(builder, result, one)
        left = right
    assert result is not None
    return result


def _is_evaluated_at_once(builder: Builder, node: ast.Compare) -> bool:
    """Return whether a chain may be evaluated to its end, without short circuits."""
    later = node.comparators[1:]
    return _is_simple(later) or all(static_number(builder, part) is not None for part in later)


def decide(builder: Builder, test: Value, if_true: Block, if_false: Block) -> None:
    """End the current block by a truth value that the source branches on."""
    builder.graph.emit("source_branch", None, [test])
    builder.graph.branch(test, if_true, if_false)


def _is_simple(operands: list[ast.expr]) -> bool:
    """Return whether later operands of `and` may be evaluated speculatively."""
    return all(
        isinstance(part, SIMPLE) and not isinstance(part, LONG)
        for operand in operands
        for part in ast.walk(operand)
    )


def boolean_operation(builder: Builder, node: ast.BoolOp) -> Operand:
    """Return `and` or `or` of truth values."""
    is_and = isinstance(node.op, ast.And)
    known = [static_number(builder, part) for part in node.values]
    if None not in known:
        return all(known) if is_and else any(known)
    if not _is_simple(node.values[1:]):
        return _chosen(builder, node, True, False, node)
    result = condition(builder, node.values[0])
    for part in node.values[1:]:
        args = [result, condition(builder, part)]
        result = builder.graph.emit("and" if is_and else "or", BOOL, args)
    return result


def conditional(builder: Builder, node: ast.IfExp) -> Any:
    """Return one of two expressions."""
    known = static_condition(builder, node.test)
    if known is not None:
        return builder.expression(node.body if known else node.orelse)
    return _chosen(builder, node.test, node.body, node.orelse, node)


def _chosen(
    builder: Builder,
    test: ast.expr,
    if_true: ast.expr | bool,
    if_false: ast.expr | bool,
    node: ast.AST,
) -> Value:
    """Return one of two expressions, in their common type; only that one is evaluated."""
    name = f"choice.{builder.new_number()}"
    graph = builder.graph
    then, other, after = (graph.new_block() for _ in range(3))
    branch(builder, test, then, other)
    ends = []
    for block, part in ((then, if_true), (other, if_false)):
        graph.enter(block)
        item = builder.expression(part) if isinstance(part, ast.expr) else part
        ends.append((graph.block, graph.line, builder.number(item, node)))
    numbers = [number for _, _, number in ends]
    dtype = BOOL if all(type_of(number) == BOOL for number in numbers) else common_type(*numbers)
    for graph.block, graph.line, number in ends:
        graph.write(name, builder.as_type(number, dtype))
        graph.jump(after)
    graph.enter(after)
    return graph.read(name, dtype)
