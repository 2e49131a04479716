"""The machine-independent half of -O3: an ordered list of passes over the SSA form."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.compiler.ir import Function
from gpusim.lowering.dead import dead
from gpusim.lowering.disjoint import disjoint
from gpusim.lowering.fold import fold
from gpusim.lowering.forward import forward
from gpusim.lowering.graph import reverse_postorder
from gpusim.lowering.hoist import hoist
from gpusim.lowering.meet_once import meet_once
from gpusim.lowering.number import number
from gpusim.lowering.overwritten import overwritten
from gpusim.lowering.promote import promote
from gpusim.lowering.rotate import rotate
from gpusim.lowering.scatter import scatter
from gpusim.lowering.share import share
from gpusim.lowering.sink import sink
from gpusim.lowering.ssa import remove_trivial_phis
from gpusim.lowering.tidy import tidy
from gpusim.lowering.unroll import unroll
from gpusim.lowering.unroll_partly import unroll_partly
from gpusim.lowering.widen import widen

Pass = Callable[[Function], object]


def simplify(function: Function) -> None:
    """Fold, number and tidy until nothing changes."""
    changed = True
    while changed:
        remove_trivial_phis(function)
        changed = fold(function)
        changed |= number(function)
        dead(function)
        changed |= tidy(function)


def unroll_all(function: Function) -> bool:
    """Unroll loops of known length from the inside out, folding in between."""
    changed = False
    while unroll(function):
        simplify(function)
        changed = True
    return changed


PASSES: tuple[Pass, ...] = (
    simplify,
    rotate,
    simplify,
    unroll_all,
    scatter,
    forward,
    overwritten,
    share,
    simplify,
    hoist,
    promote,
    forward,
    overwritten,
    simplify,
    unroll_partly,
    simplify,
    widen,
    disjoint,
    simplify,
    meet_once,
    sink,
)


def optimise(function: Function) -> None:
    """Rewrite `function` as NVVM and ptxas would before choosing instructions."""
    changed: object = True
    for step in PASSES:
        if step is not simplify:
            changed = step(function) or changed
        elif changed:
            simplify(function)
            changed = False
    function.blocks = reverse_postorder(function)
    for name, block in enumerate(function.blocks):
        block.name = name
