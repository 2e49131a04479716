"""Def-use chains: the uses of a value, and the block of its definition."""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value


def users(function: Function) -> dict[Value, list[Value]]:
    """Return, for each value that an operation or phi uses, its users, once per operand.

    Branch conditions are not operations: see `Block.condition`.
    """
    found: dict[Value, list[Value]] = {}
    for value in function.values():
        for arg in value.args:
            found.setdefault(arg, []).append(value)
    return found


def definitions(function: Function) -> dict[Value, Block]:
    """Return the block of each phi and operation."""
    return {v: b for b in function.blocks for v in (*b.phis, *b.body)}
