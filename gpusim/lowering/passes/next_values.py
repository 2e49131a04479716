"""Next values last: a variable's next value is computed after the last use of its current one.

Then both fit into one register, and no copy is needed at the loop's end (coalescing).
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.def_use import users
from gpusim.lowering.analysis.loops import natural_loops


def next_values(function: Function) -> bool:
    """Move the next values of loops' variables down; return whether any was moved."""
    using = users(function)
    changed = False
    for loop in natural_loops(function):
        for phi in loop.header.phis:
            for latch in loop.latches:
                following = phi.args[loop.header.preds.index(latch)]
                changed |= _move(latch, phi, following, using)
    return changed


def _move(latch: Block, phi: Value, following: Value, using: dict[Value, list[Value]]) -> bool:
    """Move a value that nothing else here needs after the last that uses the variable."""
    needed = any(user in latch.body for user in using.get(following, ()))
    if following not in latch.body or not following.operation.pure or needed:
        return False
    place = latch.body.index(following)
    behind = [i for i, v in enumerate(latch.body) if i > place and phi in v.args]
    if not behind:
        return False
    latch.body.insert(behind[-1] + 1, following)
    latch.body.pop(place)
    return True
