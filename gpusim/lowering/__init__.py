"""Lowering: from SSA form to machine code, an ordered list of small passes.

At O3 as an optimising compiler for the compute capability would, at O0 as written: nothing
predicated, merged or kept.
"""

from __future__ import annotations

from gpusim.compiler.ir import Function
from gpusim.isa import Program
from gpusim.launch import ComputeCapability
from gpusim.lowering.addresses import expose
from gpusim.lowering.coalesce import leave_ssa, peak_registers
from gpusim.lowering.link import link
from gpusim.lowering.optimise import optimise
from gpusim.lowering.placement import place
from gpusim.lowering.predicate import predicate
from gpusim.lowering.reconverge import add_convergence_barriers, meetings, unify_latches
from gpusim.lowering.schedule import schedule
from gpusim.lowering.select import select
from gpusim.lowering.together import ask_whether_together
from gpusim.lowering.uniform import Uniformity, is_end

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
