"""The machine-independent half of -O3: an ordered list of passes over the SSA form."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.compiler.ir import Function
from gpusim.lowering.graph import reverse_postorder
from gpusim.lowering.passes.common_code import share
from gpusim.lowering.passes.dce import dead
from gpusim.lowering.passes.disjoint_or import disjoint
from gpusim.lowering.passes.dse import overwritten
from gpusim.lowering.passes.fold import fold
from gpusim.lowering.passes.full_unrolling import unroll
from gpusim.lowering.passes.gvn import number
from gpusim.lowering.passes.licm import hoist
from gpusim.lowering.passes.load_vectorisation import widen
from gpusim.lowering.passes.loop_rotation import rotate
from gpusim.lowering.passes.merge_phi_blocks import meet_once
from gpusim.lowering.passes.runtime_unrolling import unroll_partly
from gpusim.lowering.passes.scalar_promotion import promote
from gpusim.lowering.passes.simplify_cfg import tidy
from gpusim.lowering.passes.sinking import sink
from gpusim.lowering.passes.sroa import scatter
from gpusim.lowering.passes.ssa_repair import remove_trivial_phis
from gpusim.lowering.passes.store_to_load_forwarding import forward

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
