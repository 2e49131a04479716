"""Whole launches in compiled code with race detection, before a check step by step.

Compiled code compares each access where it is made, but has no findings to tell: a launch with
anything to report is left to the steps, from its start.
"""

from __future__ import annotations

from dataclasses import dataclass
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

if TYPE_CHECKING:
    from gpusim.machine.compiled.detection import Cells, Detection, Examined
    from gpusim.machine.storage import Allocation


# What a step of NumPy's takes at least, and each warp of it; and a byte of an array with its
# elements in linear memory.
STEP_NS, WARP_NS, BYTE_NS = 100_000, 500, 8
MOST_PROGRAMS = 256

_refused: dict[Same[Program], None] = {}


def forget() -> None:
    """Forget which programs had something to report."""
    _refused.clear()


def _end(fault: KernelFault) -> None:
    """End the attempt at a fault that only checks report."""
    raise fault


@dataclass(frozen=True)
class Examination:
    """A launch to be examined in compiled code."""

    prepared: Prepared
    detection: Detection
    cells: Cells
    step_limit: int

    def result(self) -> Examined | None:
        """Return what was found; None, with arrays as they were, where the steps have to tell."""
        program = Same(self.prepared.program)
        if not fast.is_wanted() or program in _refused or not self._is_possible():
            return None
        found = self._attempt()
        if found is None:
            _refused[program] = None
            while len(_refused) > MOST_PROGRAMS:
                del _refused[next(iter(_refused))]
        else:
            self.prepared.give_back()
        return found

    @cached_property
    def _allocations(self) -> dict[str, Allocation]:
        return allocated(self.prepared)

    @cached_property
    def _array_bytes(self) -> int:
        return sum(one.stop - one.start for one in self._allocations.values())

    def _is_possible(self) -> bool:
        """Return whether compiled code may serve the launch, in its linear memory, and soon."""
        from gpusim.machine.compiled import arrays, evaluator

        prepared = self.prepared
        every = self._allocations.values()
        if any(one.flat is None or one.copy is not None or one.heap for one in every):
            return False
        size = self._array_bytes + self.cells.size(prepared.launch.warps_per_block)
        is_small = prepared.rehearsal is None and size <= arrays.MOST_BYTES
        return is_small and self._outlasts_copies() and evaluator.serves((), prepared.cc.major)

    def _outlasts_copies(self) -> bool:
        """Return whether the steps of a launch may take longer than its memory takes to be made."""
        program, launch = self.prepared.program, self.prepared.launch
        if loop_bodies(program):
            return True
        step = STEP_NS + WARP_NS * launch.blocks * launch.warps_per_block
        return self._array_bytes * BYTE_NS < len(program.instructions) * step

    def _attempt(self) -> Examined | None:
        from gpusim.machine.compiled import examination

        program, launch = self.prepared.program, self.prepared.launch
        one = Batch(program, launch, np.zeros(1, np.int64), Liveness(program))
        context = Context(one, self.prepared.arguments, self._allocations, on_fault=_end)
        with np.errstate(all="ignore"):
            return examination.examined(
                context,
                self.prepared.cc.major,
                self.detection,
                self.cells,
                step_limit=self.step_limit,
            )
