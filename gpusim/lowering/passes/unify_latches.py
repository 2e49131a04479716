"""One latch for every loop: its lanes reconverge there after each iteration."""

from __future__ import annotations

from gpusim.compiler.ir import Function, Value
from gpusim.lowering.analysis.loops import natural_loops
from gpusim.lowering.graph import new_block


def unify_latches(function: Function) -> None:
    """Let each loop have one way back: a latch, where its lanes reconverge after an iteration."""
    for loop in natural_loops(function):
        if len(loop.latches) < 2:
            continue
        header = loop.header
        latch = new_block(function, line=header.line)
        back = [i for i, p in enumerate(header.preds) if p in loop.latches]
        others = [i for i, p in enumerate(header.preds) if p not in loop.latches]
        latch.preds = [header.preds[i] for i in back]
        for block in loop.latches:
            block.targets = tuple(latch if t is header else t for t in block.targets)
        header.preds = [*(header.preds[i] for i in others), latch]
        latch.targets = (header,)
        for phi in header.phis:
            joined = Value("phi", phi.dtype, [phi.args[i] for i in back], line=phi.line)
            latch.phis.append(joined)
            phi.args = [*(phi.args[i] for i in others), joined]
