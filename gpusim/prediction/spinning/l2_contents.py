"""Lines that a batch brings into the L2, by executed and by skipped iterations."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Program
from gpusim.launch.events import Skip, Step
from gpusim.prediction.spinning.lines import Lines
from gpusim.program.flow import loop_bodies


class L2Contents:
    """Marks the lines touched by a batch as present in the L2."""

    def __init__(self, program: Program, lines: Lines) -> None:
        self._lines = lines
        self._bodies = {body.start: body for body in loop_bodies(program)}
        self._latest: dict[int, Step] = {}  # by pc

    def hear(self, step: Step) -> None:
        """Mark the lines of a step."""
        assert step.addresses is not None
        addresses, on = np.broadcast_arrays(step.addresses, step.on)
        self._lines.touch(addresses[on])
        self._latest[step.pc] = step

    def skip(self, head: int, skip: Skip) -> None:
        """Mark the lines of skipped iterations of the loop at `head`, whose addresses advance."""
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
