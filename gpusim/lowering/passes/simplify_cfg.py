"""CFG simplification: straight lines become one block, empty blocks go, phis become selects.

A phi becomes a select where nothing is done on either side of the branch before it.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.graph import remove_edge, remove_unreachable, replace_uses, set_jump


def simplify_cfg(function: Function) -> bool:
    """Simplify the graph until nothing changes; return whether anything did."""
    changed = remove_unreachable(function)
    while _merge(function) or _skip_empty(function) or _select(function):
        changed = True
    return changed


def _merge(function: Function) -> bool:
    """Append a block to its only predecessor where that leads nowhere else."""
    replacements: dict[Value, Value] = {}
    gone: set[Block] = set()
    for block in function.blocks:
        if block in gone:
            continue
        while len(block.targets) == 1:
            (target,) = block.targets
            if len(target.preds) != 1 or target is block or target is function.entry:
                break
            replacements.update({phi: phi.args[0] for phi in target.phis})
            block.body = [*block.body, *target.body]
            block.condition, block.targets = target.condition, target.targets
            for after in target.targets:
                after.preds = [block if p is target else p for p in after.preds]
            gone.add(target)
    function.blocks = [b for b in function.blocks if b not in gone]
    replace_uses(function, replacements)
    return bool(gone)


def _skip_empty(function: Function) -> bool:
    """Redirect edges into an empty block to its target."""
    changed = False
    for block in list(function.blocks):
        if block.phis or block.body or len(block.targets) != 1 or block is function.entry:
            continue
        (target,) = block.targets
        if target is block or not _can_skip(block, target):
            continue
        place = target.preds.index(block)
        values = [phi.args[place] for phi in target.phis]
        remove_edge(block, target)
        for pred in block.preds:
            pred.targets = tuple(target if t is block else t for t in pred.targets)
            if pred in target.preds:  # a branch with both targets now equal
                pred.condition, pred.targets = None, (target,)
                continue
            target.preds = [*target.preds, pred]
            for phi, value in zip(target.phis, values, strict=True):
                phi.args = [*phi.args, value]
        block.preds = []
        function.blocks.remove(block)
        changed = True
    return changed


def _can_skip(block: Block, target: Block) -> bool:
    """Whether phis of `target` are the same on the edge from `block` as from its predecessors."""
    shared = [p for p in block.preds if p in target.preds]
    place = target.preds.index(block)
    return all(
        phi.args[place] is phi.args[target.preds.index(p)] for p in shared for phi in target.phis
    )


def _select(function: Function) -> bool:
    """Turn the phis after a branch with nothing on either side into selects."""
    changed = False
    for block in function.blocks:
        if block.condition is None:
            continue
        if_true, if_false = block.targets
        if if_true is if_false:
            set_jump(block, if_true)
            changed = True
            continue
        join = _join_of_empty_sides(block, if_true, if_false)
        if join is None:
            continue
        via_true = block if if_true is join else if_true
        via_false = block if if_false is join else if_false
        true_at, false_at = join.preds.index(via_true), join.preds.index(via_false)
        chosen = []
        for phi in join.phis:
            a, b = phi.args[true_at], phi.args[false_at]
            if a is b:
                chosen.append(a)
                continue
            select = Value("select", phi.dtype, [block.condition, a, b], line=phi.line)
            block.body.append(select)
            chosen.append(select)
        for pred in (via_true, via_false):
            remove_edge(pred, join)
        for side in (if_true, if_false):
            if side is not join:
                side.targets, side.preds = (), []
        block.condition, block.targets = None, (join,)
        join.preds = [*join.preds, block]
        for phi, value in zip(join.phis, chosen, strict=True):
            phi.args = [*phi.args, value]
        remove_unreachable(function)
        return True
    return changed


def _join_of_empty_sides(block: Block, if_true: Block, if_false: Block) -> Block | None:
    """Return where both sides of a branch reconverge with nothing done on either."""

    def end(side: Block) -> Block | None:
        empty = not side.body and not side.phis and side.preds == [block]
        return side.targets[0] if empty and len(side.targets) == 1 else None

    after_true, after_false = end(if_true), end(if_false)
    if after_true is if_false:
        return if_false
    if after_false is if_true:
        return if_true
    if after_true is not None and after_true is after_false:
        return after_true
    return None
