"""Loop rotation: `while` becomes a guard and `do ... while`, its test copied before the loop.

The body then ends in the test and its branch back, one branch an iteration, and code
before the loop runs only if the loop does.
"""

from __future__ import annotations

from gpusim.compiler.ir import Block, Function, Value
from gpusim.lowering.analysis.loops import Loop, natural_loops
from gpusim.lowering.graph import add_edge, copy_value, make_preheader, remove_edge, split_edge
from gpusim.lowering.passes.ssa_repair import repair

# LLVM's -rotation-max-header-size.
LARGEST_HEADER = 16


def loop_rotation(function: Function) -> bool:
    """Rotate every loop that its header leaves; return whether there were any."""
    done: set[Block] = set()
    while True:
        loop = next((o for o in natural_loops(function) if o.header not in done), None)
        if loop is None:
            return bool(done)
        if _worthwhile(loop):
            done.add(_rotate(function, loop))
        done.add(loop.header)


def _worthwhile(loop: Loop) -> bool:
    header = loop.header
    leaving = {block for block, _ in loop.exits}
    if header not in leaving or any(latch in leaving for latch in loop.latches):
        return False
    copied = [v for v in header.body if v.constant is None and not v.operation.describes]
    return len(copied) <= LARGEST_HEADER and not any(v.operation.convergent for v in copied)


def _rotate(function: Function, loop: Loop) -> Block:
    """Copy the header's test to the block before the loop; return the new header."""
    header = loop.header
    before = make_preheader(function, loop)
    inside, outside = header.targets
    if inside not in loop.blocks:
        inside, outside = outside, inside
    if len(inside.preds) > 1:
        inside = split_edge(function, header, inside)
    entry = header.preds.index(before)
    values: dict[Value, Value] = {phi: phi.args[entry] for phi in header.phis}
    for value in header.body:
        if value.op != "const":
            values[value] = copy_value(value, values)
            before.body.append(values[value])
    assert header.condition is not None
    remove_edge(before, header)
    before.condition = values.get(header.condition, header.condition)
    before.targets = header.targets
    for target in (inside, outside):
        at_header = target.preds.index(header)
        incoming = [phi.args[at_header] for phi in target.phis]
        add_edge(before, target, [values.get(v, v) for v in incoming])
    repair(function, {v: {header: v, before: copy} for v, copy in values.items()})
    return inside
