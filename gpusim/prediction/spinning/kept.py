"""What a batch leaves in the L2: the lines of what it ran, and of iterations that were left out."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Program
from gpusim.launch.events import Skip, Step
from gpusim.prediction.spinning.lines import Lines
from gpusim.program.flow import loop_bodies


class Kept:
    """The lines that a batch touches are in the L2 from then on."""

    def __init__(self, program: Program, lines: Lines) -> None:
        self._lines = lines
        self._bodies = {body.start: body for body in loop_bodies(program)}
        self._latest: dict[int, Step] = {}  # by pc

    def hear(self, step: Step) -> None:
        """Take note of what a step touches."""
        assert step.addresses is not None
        addresses, on = np.broadcast_arrays(step.addresses, step.on)
        self._lines.touch(addresses[on])
        self._latest[step.pc] = step

    def skip(self, head: int, skip: Skip) -> None:
        """Take note of what the iterations of a loop touch that are left out: it moves on."""
        if not skip.strides:
            return
        arrays = np.array(sorted(skip.strides), dtype=np.int64)
        strides = np.array([skip.strides[array] for array in arrays.tolist()], dtype=np.int64)
        times = skip.times.max(axis=0)[:, None]
        for pc in self._bodies[head]:
            step = self._latest.get(pc)
            if step is None or not np.array_equal(step.rows, skip.rows):
                continue
            assert step.addresses is not None
            for addresses, on in zip(*np.broadcast_arrays(step.addresses, step.on), strict=True):
                array = np.searchsorted(arrays, addresses, side="right") - 1
                self._lines.touch_again(addresses, on & (array >= 0), times, strides[array])
