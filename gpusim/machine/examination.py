"""Whole launches in compiled code with race detection, beside a check step by step.

A check costs NumPy some tenths of a millisecond a step whatever it does. Compiled code compares
each access where it is made, but has no findings to tell: a launch with anything to report is
left to the steps. So NumPy begins, until its steps have taken as long as the module takes to be
loaded, or made; a module that is known is tried first.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpusim.errors import KernelFault
from gpusim.host import fast
from gpusim.isa.ops import Program
from gpusim.launch.prepared import Prepared
from gpusim.machine.banks import allocated
from gpusim.machine.context import Context
from gpusim.machine.state import Batch
from gpusim.program.flow import loop_bodies
from gpusim.program.liveness import Liveness
from gpusim.program.memoisation import Same
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.machine.compiled.detection import Cells, Detection, Examined
    from gpusim.machine.storage import Allocation


# Steps of a check take 0.1 to 0.4 ms on a Xeon of 2.1 GHz. Loading a module takes 10 ms, the first
# of a process 60 more; making one takes 15 ms and 0.5 ms an instruction.
LOAD_STEPS, FIRST_STEPS, STEPS, STEPS_EACH = 50, 300, 100, 3
# What a step of NumPy's takes at least, and a byte of an array with its elements in linear memory.
STEP_NS, BYTE_NS = 100_000, 8
MOST_PROGRAMS = 256
_MODULES = "gpusim.machine.compiled.modules"

_refused: dict[Same[Program], None] = {}


def forget() -> None:
    """Forget which programs had something to report."""
    _refused.clear()


def _end(fault: KernelFault) -> None:
    """End the attempt at a fault that only checks report."""
    raise fault


@dataclass
class Examination:
    """The attempts to examine a launch in compiled code, before its first step and after some."""

    prepared: Prepared
    detection: Detection
    cells: Cells
    step_limit: int
    _before: dict[str, Array] | None = field(default=None, init=False)
    _is_open: bool = field(default_factory=fast.is_wanted, init=False)

    def at_once(self) -> Examined | None:
        """Return the result of a launch whose module is known in this process.

        None if NumPy has to begin: arrays are then as they were, and kept.
        """
        self._is_open &= self._is_possible()
        if self._is_open and _MODULES in sys.modules and self._outlasts_copies():
            found = self._attempt("known")
            if found is not None:
                return found
        if self._is_open:
            self._before = {
                name: np.empty(one.stop - one.start, np.uint8)
                for name, one in self._allocations.items()
            }
            for name, held in self._before.items():
                self._allocations[name].copy_to(held)
        return None

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of steps after which `after` wants to be called."""
        if not self._is_open:
            return ()
        load = LOAD_STEPS if _MODULES in sys.modules else FIRST_STEPS
        return load, load + STEPS + STEPS_EACH * len(self.prepared.program.instructions)

    def after(self, steps: int) -> Examined | None:
        """Return the result of the launch, begun anew; None if NumPy has to go on."""
        if not self._is_open:
            return None
        return self._attempt("loaded" if steps == self.steps[0] else "compiled")

    @cached_property
    def _allocations(self) -> dict[str, Allocation]:
        return allocated(self.prepared)

    def _is_possible(self) -> bool:
        """Return whether compiled code may serve the launch, in its linear memory."""
        from gpusim.machine.compiled import arrays, evaluator

        prepared = self.prepared
        if prepared.rehearsal is not None or Same(prepared.program) in _refused:
            return False
        every = self._allocations.values()
        if any(one.flat is None or one.copy is not None or one.heap for one in every):
            return False
        size = sum(one.stop - one.start for one in every)
        size += self.cells.size(prepared.launch.warps_per_block)
        return size <= arrays.MOST_BYTES and evaluator.serves((), prepared.cc.major)

    def _outlasts_copies(self) -> bool:
        """Return whether the steps of a launch may take longer than its memory takes to be made."""
        program = self.prepared.program
        if loop_bodies(program):
            return True
        size = sum(one.stop - one.start for one in self._allocations.values())
        return size * BYTE_NS < len(program.instructions) * STEP_NS

    def _attempt(self, source: str) -> Examined | None:
        from gpusim.machine.compiled import examination, modules

        prepared = self.prepared
        program, launch = prepared.program, prepared.launch
        one = Batch(program, launch, np.zeros(1, np.int64), Liveness(program))
        context = Context(one, prepared.arguments, self._allocations, on_fault=_end)
        try:
            find = getattr(modules, source)
            module = examination.module_for(context, prepared.cc.major, self.detection, find)
        except examination.RefusedError:
            module, self._is_open = None, False
        if module is not None:
            with np.errstate(all="ignore"):
                found = examination.examined(
                    context, module, self.cells, step_limit=self.step_limit, before=self._before
                )
            if found is not None:
                prepared.give_back()
                return found
            self._is_open = False
        if not self._is_open:
            _refused[Same(program)] = None
            while len(_refused) > MOST_PROGRAMS:
                del _refused[next(iter(_refused))]
        return None
