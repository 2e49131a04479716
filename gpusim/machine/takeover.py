"""The choice of an evaluator: a batch with few warps at a pc goes over to compiled code.

NumPy begins each launch. A step costs it about as much for one warp as for hundreds; compiled code
costs the same for each warp, and some tenths of a second to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpusim.host import fast
from gpusim.launch.events import Observer
from gpusim.machine.interpreter import Interpreter

if TYPE_CHECKING:
    from gpusim.machine.compiled.evaluator import CompiledLaunch

# Steps of a launch in NumPy before compiled code is made: 0.1 s at 60 us each. A module for a
# kernel of a few hundred instructions takes as long (Xeon, 2.1 GHz).
STEPS = 2_000
# Warps that run a step, above which NumPy is as fast: 25 million instructions of warps a second.
MOST_WARPS = 1_500


@dataclass
class Takeover:
    """Whether, and with which module, a launch goes over to compiled code."""

    cc_major: int
    observers: Sequence[Observer]
    step_limit: int
    is_open: bool = field(default_factory=fast.is_wanted)
    _launch: CompiledLaunch | None = None

    @property
    def launch(self) -> CompiledLaunch | None:
        """The launch in compiled code, once it went over."""
        return self._launch if self.is_open else None

    def quantum(self, steps: int) -> int:
        """Return the number of steps until the next decision, of at most `steps`."""
        return min(steps, STEPS) if self.is_open else steps

    def runs(self, interpreter: Interpreter) -> bool:
        """Run the rest of a batch in compiled code; return False where NumPy goes on."""
        context = interpreter.context
        if not self.is_open or context.executed < STEPS:
            return False
        if interpreter.warps_run > MOST_WARPS * context.executed:
            return False
        if self._launch is None:
            from gpusim.machine.compiled.evaluator import compiled_launch

            self._launch = compiled_launch(context, self.cc_major, self.observers)
        return self.goes_on(interpreter)

    def goes_on(self, interpreter: Interpreter) -> bool:
        """Run a batch of a launch that went over; return False where NumPy has to run it."""
        if self._launch is None:
            self.is_open = False
            return False
        from gpusim.machine.compiled.instance import LeftError

        try:
            self._launch.run(interpreter.context, self.step_limit)
        except LeftError:
            self.is_open = False
        return self.is_open
