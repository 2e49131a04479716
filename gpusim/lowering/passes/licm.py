"""Loop-invariant code motion (LICM): values that a loop does not change are computed before it.

Loads go too if nothing in the loop can write to their address and they would have been
executed in any case.
"""

from __future__ import annotations

from gpusim.compiler.dominators import Dominators, dominators
from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.alias import clobbers, is_plain_load
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.graph import make_preheader


def licm(function: Function) -> bool:
    """Move invariant operations out of every loop, inner loops first."""
    changed = False
    for loop in natural_loops(function):
        moved = _invariant(loop, dominators(function))
        if moved:
            before = make_preheader(function, loop)
            gone = set(moved)
            for block in loop.blocks:
                block.body = [v for v in block.body if v not in gone]
            before.body = [*before.body, *moved]
            changed = True
    return changed


def _invariant(loop: Loop, tree: Dominators) -> list[Value]:
    """Return the operations to move, operands first."""
    inside = {v for b in loop.blocks for v in (*b.phis, *b.body)}
    writes = [v for b in loop.blocks for v in b.body if not v.operation.pure]
    leaving = [block for block, _ in loop.exits] or loop.latches
    always = {b for b in loop.blocks if all(tree.dominates(b, e) for e in leaving)}
    moved: list[Value] = []
    for block in loop.blocks:
        for value in block.body:
            if any(a in inside for a in value.args) or value.operation.immediate:
                continue
            if _may_move(value, block, always, writes):
                inside.discard(value)
                moved.append(value)
    return moved


def _may_move(value: Value, block: Block, always: set[Block], writes: list[Value]) -> bool:
    if value.operation.pure:
        return not value.operation.may_trap or block in always or value.args[1].op == "const"
    if not is_plain_load(value) or block not in always:
        return False
    return not any(clobbers(other, value) for other in writes)
