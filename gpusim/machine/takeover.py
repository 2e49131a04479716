"""The choice of an evaluator: launches go over to compiled code where that is faster.

A step costs NumPy about as much for one warp as for hundreds; compiled code costs the same for
each warp, and some tenths of a second to make. So NumPy begins the launches of a program, until
its module is worth loading, or making; launches after that begin in compiled code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.host import fast
from gpusim.launch.events import Observer
from gpusim.machine.interpreter import Interpreter

if TYPE_CHECKING:
    from gpusim.machine.compiled.evaluator import CompiledLaunch
    from gpusim.machine.context import Context

Array = np.ndarray[Any, Any]

# Steps of a launch in NumPy before a module is loaded, and before it is made: at 60 us each as
# long as that takes for a kernel of a few hundred instructions (Xeon, 2.1 GHz).
LOAD_STEPS, STEPS = 500, 2_000
# Warps that run a step, above which NumPy is as fast: 25 million instructions of warps a second.
MOST_WARPS = 1_500
_MODULES = "gpusim.machine.compiled.modules"


@dataclass
class Takeover:
    """Whether, and with which module, a launch goes over to compiled code."""

    cc_major: int
    observers: Sequence[Observer]
    step_limit: int
    is_open: bool = field(default_factory=fast.is_wanted)
    _launch: CompiledLaunch | None = None
    _was_loaded: bool = False

    @property
    def launch(self) -> CompiledLaunch | None:
        """The launch in compiled code, once it went over."""
        return self._launch if self.is_open else None

    def begins(self, context: Callable[[], Context]) -> None:
        """Let a launch begin in compiled code if its program has run in it before."""
        if self.is_open and _MODULES in sys.modules:
            self._go_over(context(), sys.modules[_MODULES].known)

    def quantum(self, steps: int) -> int:
        """Return the number of steps until the next decision, of at most `steps`."""
        if not self.is_open:
            return steps
        return min(steps, STEPS if self._was_loaded else min(LOAD_STEPS, STEPS))

    def runs(self, interpreter: Interpreter) -> bool:
        """Run the rest of a batch in compiled code; return False where NumPy goes on."""
        context = interpreter.context
        if not self.is_open or context.executed < min(LOAD_STEPS, STEPS):
            return False
        if interpreter.warps_run > MOST_WARPS * context.executed:
            return False
        from gpusim.machine.compiled import modules

        if context.executed < STEPS:
            if not self._was_loaded:
                self._was_loaded = True
                self._go_over(context, modules.loaded)
        else:
            self._go_over(context, modules.compiled)
            self.is_open = self._launch is not None
        return self._launch is not None and self.goes_on(interpreter)

    def _go_over(self, context: Context, find: Callable[..., Any]) -> None:
        from gpusim.machine.compiled.evaluator import launched

        self._launch = launched(context, self.cc_major, self.observers, find)

    def goes_on(self, interpreter: Interpreter) -> bool:
        """Run a batch of a launch that went over; return False where NumPy has to run it."""
        return self._is_done(lambda launch: launch.run(interpreter.context, self.step_limit))

    def runs_anew(self, blocks: Array) -> bool:
        """Run blocks from their start; return False where NumPy has to run them."""
        return self._is_done(lambda launch: launch.run_anew(blocks, self.step_limit))

    def _is_done(self, run: Callable[[CompiledLaunch], None]) -> bool:
        from gpusim.machine.compiled.instance import LeftError

        assert self._launch is not None
        try:
            run(self._launch)
        except LeftError:
            self.is_open = False
        return self.is_open

    def close(self) -> None:
        """End the launch."""
        if self._launch is not None:
            self._launch.close(is_left=not self.is_open)
