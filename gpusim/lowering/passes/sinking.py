"""Code sinking: a value is computed only on the paths that use it, after the branch.

It goes to the nearest block that all uses lie after, but into no loop; and not where many values
more than are saved would have to be kept until then: a sum of many loads stays with them.
"""

from __future__ import annotations

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.def_use import definitions
from gpusim.lowering.analysis.loops import natural_loops

MOST_KEPT = 1  # values for a block, beyond the number of saved ones


def sinking(function: Function) -> bool:
    """Move operations down the dominator tree; return whether any was moved."""
    tree = dominators(function)
    depth = {b: loop.depth for loop in reversed(natural_loops(function, tree)) for b in loop.blocks}
    uses = _uses(function)
    home = definitions(function)
    kept: dict[Block, int] = {}
    changed = False
    for block in reversed(tree.preorder()):
        for value in reversed(list(block.body)):
            row = value.operation
            if not (row.pure and row.sinks and uses.get(value)):
                continue
            places = [home[u] if isinstance(u, Value) else u for u in uses[value]]
            target = _above_all(tree, places)
            while depth.get(target, 0) > depth.get(block, 0):
                parent = tree.parent[target]
                assert parent is not None
                target = parent
            if target is block:
                continue
            more = kept.get(target, 0) + _kept(tree, uses, home, value, target) - 1
            if more <= MOST_KEPT:
                kept[target] = max(0, more)
                block.body.remove(value)
                target.body.insert(0, value)
                home[value] = target
                changed = True
    return changed


def _kept(
    tree: Dominators,
    uses: dict[Value, list[Value | Block]],
    home: dict[Value, Block],
    value: Value,
    target: Block,
) -> int:
    """Return the number of values kept live for one that is computed in a later block."""
    kept = 0
    for arg in dict.fromkeys(value.args):
        others = (home[u] if isinstance(u, Value) else u for u in uses[arg] if u is not value)
        places = list(others)
        if arg not in home or any(tree.dominates(target, place) for place in places):
            continue
        follows = not places and arg.operation.pure and arg.operation.sinks
        kept += min(1, _kept(tree, uses, home, arg, target)) if follows else bool(arg.args)
    return kept


def _uses(function: Function) -> dict[Value, list[Value | Block]]:
    """Return the places of each value's uses: the operations, the ends of blocks."""
    uses: dict[Value, list[Value | Block]] = {}
    for block in function.blocks:
        for phi in block.phis:
            for arg, pred in zip(phi.args, block.preds, strict=True):
                uses.setdefault(arg, []).append(pred)
        for value in block.body:
            for arg in value.args:
                uses.setdefault(arg, []).append(value)
        if block.condition is not None:
            uses.setdefault(block.condition, []).append(block)
    return uses


def _above_all(tree: Dominators, places: list[Block]) -> Block:
    """Return the nearest common dominator of all these."""
    above = places[0]
    for place in places[1:]:
        while not tree.dominates(above, place):
            parent = tree.parent[above]
            assert parent is not None
            above = parent
    return above
