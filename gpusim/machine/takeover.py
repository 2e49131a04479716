"""Launches of which iterations are left out, until compiled code takes less time for them whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusim.isa.ops import Program
from gpusim.machine.interpreter import Interpreter
from gpusim.program.repetition import may_repeat

if TYPE_CHECKING:
    from gpusim.machine.compiled.evaluator import CompiledLaunch

# Steps in NumPy where equal iterations of loops are left out: of launches that go over, none. It
# does not depend on what is kept of a program, as streams do on whether iterations are left out.
# Where no loop can have any, or none was found in those that were examined, about as many as a
# module takes to be made: of 95 slow launches of `validate/others`, each loop with equal iterations
# shows that within 200 steps.
STEPS_WITHOUT_SKIP, STEPS_FOR_A_MODULE, STEPS_FOR_AN_INSTRUCTION = 5_000, 250, 1
LEFT_OUT_A_STEP = 64  # warp instructions: compiled code records them in a third of a step's time
MOST_WARPS = 1_500  # that run a step of these, above which NumPy is as fast


class NoSkipsError(Exception):
    """Nothing was left out of blocks that compiled code can run anew."""


def steps_for_a_module(program: Program) -> int:
    """Return the steps in NumPy above which a module is made for blocks that are recorded."""
    return STEPS_FOR_A_MODULE + STEPS_FOR_AN_INSTRUCTION * len(program.instructions)


def _fewest_steps(interpreter: Interpreter) -> int:
    """Return the steps in NumPy before a launch whose steps are recorded goes over."""
    program = interpreter.batch.program
    if interpreter.left_out:  # how much that is shows later
        return 2 * steps_for_a_module(program)
    is_known = interpreter.seems_not_to_repeat or not may_repeat(program)
    return steps_for_a_module(program) if is_known else STEPS_WITHOUT_SKIP


@dataclass
class Takeover:
    """Whether a launch whose steps are recorded goes over to compiled code, which `begins` it."""

    begins: Callable[[], CompiledLaunch | None]
    is_open: bool

    def look(self, interpreter: Interpreter) -> None:
        """Raise NoSkipsError where compiled code takes less time for all blocks, run anew."""
        executed = interpreter.context.executed
        if not self.is_open or executed < _fewest_steps(interpreter):
            return
        self.is_open = interpreter.left_out <= LEFT_OUT_A_STEP * executed
        if not self.is_open or interpreter.warps_run > MOST_WARPS * executed:
            return
        launch = self.begins()
        self.is_open = launch is not None
        if launch is not None:
            launch.close()
            raise NoSkipsError
