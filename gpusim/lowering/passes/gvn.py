"""Global value numbering (GVN) over the dominator tree: every value is computed once.

An operation gives way to an equal one that dominates it, and in code that only one side
of a branch leads to the branch's condition is known.
"""

from __future__ import annotations

from typing import Any

from gpusim.compiler.dominators import dominators
from gpusim.compiler.ir import BOOL, Block, Function, Value, constant
from gpusim.lowering.graph import remove_values, replace_uses


def value_key(value: Value) -> Any:
    """Return a constant's type and bits, any other value itself: equal keys, equal values."""
    return (value.dtype, value.detail.tobytes()) if value.op == "const" else value


def operation_key(value: Value) -> Any:
    """Return a key that is the same for equal pure operations."""
    keys = [value_key(a) for a in value.args]
    if value.operation.commutative:
        keys.sort(key=lambda key: 0 if isinstance(key, tuple) else id(key))
    return (value.op, value.dtype, value.detail, *keys)


def gvn(function: Function) -> bool:
    """Replace each operation by an equal one above it; return whether there were any."""
    tree = dominators(function)
    replacements: dict[Value, Value] = {}
    known: dict[Block, dict[Any, Value]] = {}
    facts: dict[Block, dict[Value, Value]] = {}
    removed = False

    def lookup(key: Any, block: Block | None) -> Value | None:
        while block is not None:
            if key in known[block]:
                return known[block][key]
            block = tree.parent[block]
        return None

    for block in tree.preorder():
        known[block] = {}
        above = tree.parent[block]
        truth = {} if above is None else dict(facts[above])
        truth.update(_learned(block))
        facts[block] = truth
        for phi in block.phis:
            phi.args = [replacements.get(a, a) for a in phi.args]
            key = ("phi", *map(value_key, phi.args))
            if known[block].setdefault(key, phi) is not phi:
                replacements[phi] = known[block][key]
        for value in block.body:
            if replacements:
                value.args = [replacements.get(a, a) for a in value.args]
            if truth and not value.operation.describes:
                value.args = [truth.get(a, a) for a in value.args]
            if not value.operation.pure or value.operation.immediate:
                continue
            key = operation_key(value)
            found = lookup(key, block)
            if found is None:
                known[block][key] = value
            else:
                replacements[value] = found
        if block.condition is not None:
            condition = replacements.get(block.condition, block.condition)
            block.condition = truth.get(condition, condition)
            removed |= block.condition is not condition
    replace_uses(function, replacements)
    remove_values(function, set(replacements))
    return removed or bool(replacements)


def _learned(block: Block) -> dict[Value, Value]:
    """Return facts implied by entering `block` through the branch before it."""
    if len(block.preds) != 1:
        return {}
    pred = block.preds[0]
    if pred.condition is None or pred.targets[0] is pred.targets[1]:
        return {}
    return {pred.condition: constant(block is pred.targets[0], BOOL)}
