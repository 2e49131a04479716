"""CFG simplification of phis: paths that would reconverge twice in succession do so once.

A block of phis alone gives way to its successor, with phis that
choose among all of them. Loops keep a block of their own to come from.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function
from gpusim.lowering.analysis.def_use import users
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.graph import remove_edge


def merge_phi_blocks(function: Function) -> bool:
    """Skip blocks of nothing but phis; return whether there were any."""
    headers = {loop.header for loop in natural_loops(function)}
    changed = False
    for block in list(function.blocks):
        if len(block.targets) == 1 and block.phis and not block.body:
            (target,) = block.targets
            if target not in headers and block not in headers and _can_skip(function, block):
                _skip(block, target)
                function.blocks.remove(block)
                changed = True
    return changed


def _can_skip(function: Function, block: Block) -> bool:
    (target,) = block.targets
    if any(
        pred in target.preds or len(set(pred.targets)) < len(pred.targets) for pred in block.preds
    ):
        return False
    using = users(function)
    here = target.preds.index(block)
    conditions = {b.condition for b in function.blocks}
    for phi in block.phis:
        taken = sum(other.args[here] is phi for other in target.phis)
        if len(using.get(phi, ())) != taken or phi in conditions:
            return False
    return True


def _skip(block: Block, target: Block) -> None:
    """Redirect edges into `block` to its target."""
    here = target.preds.index(block)
    leaving = [phi.args[here] for phi in target.phis]
    remove_edge(block, target)
    for place, pred in enumerate(block.preds):
        pred.targets = tuple(target if t is block else t for t in pred.targets)
        target.preds = [*target.preds, pred]
        for phi, value in zip(target.phis, leaving, strict=True):
            phi.args = [*phi.args, value.args[place] if value in block.phis else value]
