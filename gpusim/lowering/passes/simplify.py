"""Simplification: the passes between the others, repeated until nothing changes."""

from __future__ import annotations

from gpusim.compiler.ir import Function
from gpusim.lowering.passes.dce import dce
from gpusim.lowering.passes.fold import fold
from gpusim.lowering.passes.gvn import gvn
from gpusim.lowering.passes.simplify_cfg import simplify_cfg
from gpusim.lowering.passes.ssa_repair import remove_trivial_phis


def simplify(function: Function) -> None:
    """Fold constants, number values, drop dead values and simplify the graph."""
    changed = True
    while changed:
        remove_trivial_phis(function)
        changed = fold(function)
        changed |= gvn(function)
        dce(function)
        changed |= simplify_cfg(function)
