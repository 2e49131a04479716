"""The measured duration of a loop iteration, as the estimate for skipped ones."""

from __future__ import annotations

import numpy as np

from gpusim.launch.events import Skip
from gpusim.machine.group import Group
from gpusim.typing import Array


class Iteration:
    """Duration of each warp's last iteration in a batch, by loop head.

    `issued` counts the batch's issued instructions, each once for all its warps.
    """

    def __init__(self, rows: int) -> None:
        self.issued = 0
        self._begun: dict[int, tuple[Array, Array]] = {}
        self._ticks_an_instruction = np.zeros(rows)

    def arrive(self, group: Group, at: Array) -> None:
        """Record that warps have reached a loop's head, with times `at` by row."""
        rows = group.rows
        if group.pc not in self._begun:
            self._begun[group.pc] = np.full(len(at), self.issued), at.copy()
        issued, begin = self._begun[group.pc]
        count = np.maximum(self.issued - issued[rows], 1)
        self._ticks_an_instruction[rows] = (at[rows] - begin[rows]) / count
        issued[rows], begin[rows] = self.issued, at[rows]

    def takes(self, skip: Skip) -> Array:
        """Return the ticks of skipped iterations, from the last iteration's pace, by warp."""
        left_out = skip.times.max(axis=0) * skip.issued
        return np.asarray(np.rint(left_out * self._ticks_an_instruction[skip.rows]), dtype=np.int64)
