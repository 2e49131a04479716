"""Lowering with a verifier behind every step."""

from __future__ import annotations

import program_verifier as machine
import ssa_verifier as ssa

from gpusim.compiler.ir import Function
from gpusim.isa.ops import Program
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering import lower
from gpusim.lowering.code import Code
from gpusim.lowering.machine_code.link import link

# Until they are rematerialised, what addresses count from stands in no block.
UNPLACED = ssa.NOWHERE | {"pointer", "shared_base"}


class Verifier:
    """Verifies the SSA form, and machine code as the program that it would be."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.may_be_undefined = False

    def watch(self, name: str, form: Function | Code) -> None:
        """Raise AssertionError, with the name of the step, where it left a mistake."""
        self.steps.append(name)
        if isinstance(form, Function):
            nowhere = UNPLACED if name == "address_lowering" else ssa.NOWHERE
            found = list(ssa.mistakes(form, nowhere))
            # A variable of the source that no assignment reached; any value will do.
            self.may_be_undefined = any(v.op == "undef" for v in form.values())
        elif any(form.phis.values()):
            return  # selected, but not out of SSA form yet
        else:
            program = link(form, barriers=0, registers=0, lowering="", name=name)
            found = self.of_program(program)
        assert found == [], f"after {name}"

    def of_program(self, program: Program) -> list[str]:
        """Return what is wrong with a program, save for what the source leaves undefined."""
        found = machine.mistakes(program)
        return [m for m in found if not (self.may_be_undefined and "need not be written" in m)]


def verified(function: Function, cc: ComputeCapability, level: str) -> Program:
    """Lower a function, used up, and verify what each step leaves and what comes of it."""
    verifier = Verifier()
    verifier.watch("build", function)
    program = lower(function, cc, level, verifier.watch)
    assert verifier.of_program(program) == []
    return program
