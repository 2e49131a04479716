"""The steps of one warp with the marks of its loops, and sums over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.prediction.clock.step_table import StepTable
from gpusim.prediction.clock.steps import Action, LoopMarks
from gpusim.typing import Array


@dataclass(frozen=True)
class WarpSteps:
    """The steps of a warp, their number of tags, and the fixed part of their time.

    `charges` are the ticks of each pc without contention.
    """

    steps: StepTable
    tags: int
    charges: Mapping[int, int]
    loops: tuple[LoopMarks, ...]
    instructions: int

    @cached_property
    def weights(self) -> Array:
        """Iterations represented by each step, including itself."""
        made = np.ones(len(self.steps))
        for marked in self.loops:
            made[marked.begin : marked.end] += marked.weight
        return made

    @cached_property
    def long_waits(self) -> tuple[int, int]:
        """The number of waits for global loads; loads issued together count once.

        First in these steps, then including extrapolated iterations of loops.
        """
        loads = np.cumsum(self.steps.column("action") == Action.GLOBAL_LOAD)
        waits = np.flatnonzero(self.steps.column("waits_long"))
        is_for_loads = np.diff(loads[waits], prepend=0) > 0  # of the loads since the wait before
        counts = np.zeros(len(self.steps) + 1, dtype=np.int64)  # waits before each step
        counts[1 + waits[is_for_loads]] = 1
        counts = np.cumsum(counts)
        further = sum(
            marked.loop.extrapolated
            * int(counts[marked.end] - counts[marked.begin])
            // marked.iterations
            for marked in self.loops
        )
        return int(counts[-1]), int(counts[-1]) + further

    @cached_property
    def pcs(self) -> tuple[Array, Array, Array]:
        """The pcs of the steps, ascending; the first step of each; the index of each step's."""
        pc = self.steps.column("pc")
        first_of = np.full(int(pc.max(initial=-1)) + 1, -1)
        first_of[pc[::-1]] = np.arange(len(pc))[::-1]
        pcs = np.flatnonzero(first_of >= 0)
        place_of = np.zeros_like(first_of)
        place_of[pcs] = np.arange(len(pcs))
        return pcs, first_of[pcs], place_of[pc]

    @cached_property
    def slots(self) -> Array:
        """Ticks of each step in the scheduler."""
        return self.steps.column("slot").astype(float)

    @cached_property
    def waits(self) -> Array:
        """Ticks after that until the next step, unless held at a barrier."""
        steps = self.steps
        is_held = steps.column("action") == Action.BARRIER
        return np.where(is_held, 0, steps.column("gap") - steps.column("slot")).astype(float)
