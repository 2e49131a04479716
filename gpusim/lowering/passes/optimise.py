"""The machine-independent half of -O3: an ordered list of passes over the SSA form."""

from __future__ import annotations

from collections.abc import Callable

from gpusim.compiler.dominators import reverse_postorder
from gpusim.compiler.ir import Function
from gpusim.lowering.instrumentation import Instrumentation, uninstrumented
from gpusim.lowering.passes.common_code_motion import common_code_motion
from gpusim.lowering.passes.disjoint_or import disjoint_or
from gpusim.lowering.passes.div_rem_pairs import div_rem_pairs
from gpusim.lowering.passes.dse import dse
from gpusim.lowering.passes.full_unrolling import full_unrolling
from gpusim.lowering.passes.licm import licm
from gpusim.lowering.passes.load_vectorisation import load_vectorisation
from gpusim.lowering.passes.loop_rotation import loop_rotation
from gpusim.lowering.passes.merge_phi_blocks import merge_phi_blocks
from gpusim.lowering.passes.next_values import next_values
from gpusim.lowering.passes.runtime_unrolling import runtime_unrolling
from gpusim.lowering.passes.scalar_promotion import scalar_promotion
from gpusim.lowering.passes.simplify import simplify
from gpusim.lowering.passes.sinking import sinking
from gpusim.lowering.passes.sroa import sroa
from gpusim.lowering.passes.store_to_load_forwarding import store_to_load_forwarding

Pass = Callable[[Function], object]

PASSES: tuple[Pass, ...] = (
    simplify,
    loop_rotation,
    simplify,
    licm,
    full_unrolling,
    sroa,
    store_to_load_forwarding,
    dse,
    common_code_motion,
    simplify,
    licm,
    scalar_promotion,
    store_to_load_forwarding,
    dse,
    simplify,
    runtime_unrolling,
    simplify,
    load_vectorisation,
    disjoint_or,
    div_rem_pairs,
    simplify,
    merge_phi_blocks,
    sinking,
    next_values,
)


def optimise(function: Function, watch: Instrumentation = uninstrumented) -> None:
    """Rewrite `function` as NVVM and ptxas would before choosing instructions."""
    changed: object = True
    for step in PASSES:
        if step is not simplify:
            changed = step(function) or changed
        elif changed:
            simplify(function)
            changed = False
        watch(step.__name__, function)
    _order_blocks(function)
    watch("block_order", function)


def _order_blocks(function: Function) -> None:
    function.blocks = reverse_postorder(function)
    for name, block in enumerate(function.blocks):
        block.name = name
