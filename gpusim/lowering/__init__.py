"""Lowering: from SSA form to machine code, an ordered list of small passes.

At O3 as an optimising compiler for the compute capability would, at O0 as written: nothing
predicated, merged or kept.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function
from gpusim.host.garbage import uncollected
from gpusim.isa.ops import Program
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering.analysis.divergence import Divergence, is_end
from gpusim.lowering.analysis.reconvergence import reconvergence
from gpusim.lowering.code import Code
from gpusim.lowering.instrumentation import Instrumentation, uninstrumented
from gpusim.lowering.machine_code.convergence_barriers import convergence_barriers
from gpusim.lowering.machine_code.divergence_checks import divergence_checks
from gpusim.lowering.machine_code.if_conversion import if_conversion
from gpusim.lowering.machine_code.link import link
from gpusim.lowering.machine_code.list_scheduling import list_scheduling
from gpusim.lowering.machine_code.liveness import peak_registers
from gpusim.lowering.machine_code.out_of_ssa import out_of_ssa
from gpusim.lowering.passes.address_lowering import Addresses, address_lowering
from gpusim.lowering.passes.optimise import optimise
from gpusim.lowering.passes.rematerialisation import rematerialisation
from gpusim.lowering.passes.unify_latches import unify_latches
from gpusim.lowering.selection.select import select

LEAST_REGISTERS = 16
REGISTER_UNIT = 8


@uncollected()
def lower(
    function: Function, cc: ComputeCapability, level: str, watch: Instrumentation = uninstrumented
) -> Program:
    """Return machine code for `function`, modified in place; `level` is "O0" or "O3"."""
    optimised = level != "O0"
    addresses = _rewrite(function, optimised, watch)
    divergence = Divergence(function, reconvergence(function, is_end).whole)
    code = select(function, cc, divergence, addresses, fuse=optimised)
    watch("select", code)
    barriers = _finish(code, divergence, cc, optimised, watch)
    peak = max(LEAST_REGISTERS, peak_registers(code))
    return link(
        code,
        barriers=barriers,
        registers=-(-peak // REGISTER_UNIT) * REGISTER_UNIT,
        lowering=level,
        name=function.name,
    )


def _rewrite(function: Function, optimised: bool, watch: Instrumentation) -> Addresses:
    """Rewrite the SSA form for instruction selection."""
    if optimised:
        optimise(function, watch)
    unify_latches(function)
    watch("unify_latches", function)
    addresses = address_lowering(function, share=optimised)
    watch("address_lowering", function)
    if optimised:
        rematerialisation(function, addresses)
        watch("rematerialisation", function)
    return addresses


def _finish(
    code: Code,
    divergence: Divergence,
    cc: ComputeCapability,
    optimised: bool,
    watch: Instrumentation,
) -> int:
    """Prepare selected instructions for linking; return the number of barriers."""
    out_of_ssa(code, coalesced=optimised)
    watch("out_of_ssa", code)
    if optimised:
        if_conversion(code)
        watch("if_conversion", code)
        list_scheduling(code)
        watch("list_scheduling", code)
        divergence_checks(code, divergence.apart, cc)
        watch("divergence_checks", code)
    barriers = convergence_barriers(code, gather=optimised and cc.major >= 8)
    watch("convergence_barriers", code)
    return barriers
