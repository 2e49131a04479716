"""Lowering: from SSA form to machine code, an ordered list of small passes.

At O3 as an optimising compiler for the compute capability would, at O0 as written: nothing
predicated, merged or kept.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function
from gpusim.isa import Program
from gpusim.launch import ComputeCapability
from gpusim.lowering.analysis.divergence import Uniformity, is_end
from gpusim.lowering.machine_code.convergence_barriers import (
    add_convergence_barriers,
    meetings,
    unify_latches,
)
from gpusim.lowering.machine_code.divergence_checks import ask_whether_together
from gpusim.lowering.machine_code.if_conversion import predicate
from gpusim.lowering.machine_code.link import link
from gpusim.lowering.machine_code.list_scheduling import schedule
from gpusim.lowering.machine_code.out_of_ssa import leave_ssa, peak_registers
from gpusim.lowering.passes.addresses import expose
from gpusim.lowering.passes.optimise import optimise
from gpusim.lowering.passes.rematerialisation import place
from gpusim.lowering.selection.select import select

LEAST_REGISTERS = 16
REGISTER_UNIT = 8


def lower(function: Function, cc: ComputeCapability, level: str) -> Program:
    """Return machine code for `function`, which is used up; `level` is "O0" or "O3"."""
    optimised = level != "O0"
    if optimised:
        optimise(function)
    unify_latches(function)
    addresses = expose(function, share=optimised)
    if optimised:
        place(function, addresses)
    uniformity = Uniformity(function, meetings(function, is_end).whole)
    code = select(function, cc, uniformity, addresses, fuse=optimised)
    leave_ssa(code, merge=optimised)
    if optimised:
        predicate(code)
        schedule(code)
        ask_whether_together(code, uniformity.apart, cc)
    barriers = add_convergence_barriers(code, gather=optimised and cc.major >= 8)
    peak = max(LEAST_REGISTERS, peak_registers(code))
    return link(
        code,
        barriers=barriers,
        registers=-(-peak // REGISTER_UNIT) * REGISTER_UNIT,
        lowering=level,
        name=function.name,
    )
