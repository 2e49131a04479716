"""Statements that assign, choose or return; loops are in `loops`."""

from __future__ import annotations

import ast
from typing import Any

from gpusim.compiler import arrays, names
from gpusim.compiler.arithmetic import BINARY, binary
from gpusim.compiler.builder import Builder
from gpusim.compiler.conditions import branch, static_condition
from gpusim.compiler.ir import Block

NO_TARGET = "kernels assign to variables and to elements of arrays"


def leave_out(builder: Builder, node: ast.Pass) -> None:
    """Do nothing."""


def evaluate(builder: Builder, node: ast.Expr) -> None:
    """Evaluate an expression for its effect."""
    if not isinstance(node.value, ast.Constant):
        builder.expression(node.value)


def assign_annotated(builder: Builder, node: ast.AnnAssign) -> None:
    """Assign; the annotation says nothing."""
    if node.value is not None:
        _assign_to(builder, node.target, builder.expression(node.value))


def assign(builder: Builder, node: ast.Assign) -> None:
    """Assign one value to every target."""
    item = builder.expression(node.value)
    for target in node.targets:
        _assign_to(builder, target, item)


def _assign_to(builder: Builder, target: ast.expr, item: Any) -> None:
    if isinstance(target, ast.Name):
        names.assign(builder, target.id, item, target)
    elif isinstance(target, ast.Subscript):
        array, index = arrays.element(builder, target)
        arrays.store(builder, array, index, item, target)
    elif isinstance(target, ast.Tuple):
        if not isinstance(item, tuple) or len(item) != len(target.elts):
            raise builder.error(f"this needs {len(target.elts)} values on the right", target)
        for part, value in zip(target.elts, item, strict=True):
            _assign_to(builder, part, value)
    else:
        raise builder.error(NO_TARGET, target)


def augment(builder: Builder, node: ast.AugAssign) -> None:
    """Read the target, compute, and assign."""
    op, target = BINARY[type(node.op)], node.target
    if isinstance(target, ast.Subscript):
        array, index = arrays.element(builder, target)
        old = arrays.load(builder, array, index)
        new = binary(builder, op, old, builder.expression(node.value), node)
        arrays.store(builder, array, index, new, target)
    elif isinstance(target, ast.Name):
        old = builder.expression(target)
        new = binary(builder, op, old, builder.expression(node.value), node)
        names.assign(builder, target.id, new, target)
    else:
        raise builder.error(NO_TARGET, target)


def leave(builder: Builder, node: ast.Return) -> None:
    """End a kernel, or a device function with its value."""
    frame = builder.frame
    item = None if node.value is None else builder.expression(node.value)
    if frame.exit is None:
        if item is not None:
            raise builder.error("a kernel returns nothing; only device functions do", node)
        builder.graph.leave()
        return
    if item is not None:
        names.assign(builder, "return", item, node)
    frame.returned.append(item)
    builder.graph.jump(frame.exit)


def choose(builder: Builder, node: ast.If) -> None:
    """Branch to the statements that the condition chooses; a chain of elif is followed."""
    graph = builder.graph
    afters: list[Block] = []
    last: list[ast.stmt] = [node]
    while len(last) == 1 and isinstance(last[0], ast.If) and graph.block is not None:
        one = last[0]
        builder.mark(one)
        known = static_condition(builder, one.test)
        if known is not None:
            last = one.body if known else one.orelse
            break
        then, after = graph.new_block(), graph.new_block()
        other = graph.new_block() if one.orelse else after
        branch(builder, one.test, then, other)
        graph.enter(then)
        builder.statements(one.body)
        graph.jump(after)
        afters.append(after)
        if one.orelse:
            graph.enter(other)
        last = one.orelse
    builder.statements(last)
    for after in reversed(afters):
        graph.jump(after)
        graph.enter(after)
