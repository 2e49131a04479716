"""How long an iteration of a loop took, and so how long those take that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.launch.events import Skip
from gpusim.machine.group import Group

Array = np.ndarray[Any, Any]


class Iteration:
    """The last iteration of each of a batch's warps, by where they come back to.

    `issued` counts the instructions that the batch has issued, each once for all its warps.
    """

    def __init__(self, rows: int) -> None:
        self.issued = 0
        self._begun: dict[int, tuple[Array, Array]] = {}
        self._ticks_an_instruction = np.zeros(rows)

    def arrive(self, group: Group, at: Array) -> None:
        """Take note that warps stand at a loop's head, at the times of their rows."""
        rows = group.rows
        if group.pc not in self._begun:
            self._begun[group.pc] = np.full(len(at), self.issued), at.copy()
        issued, begin = self._begun[group.pc]
        count = np.maximum(self.issued - issued[rows], 1)
        self._ticks_an_instruction[rows] = (at[rows] - begin[rows]) / count
        issued[rows], begin[rows] = self.issued, at[rows]

    def takes(self, skip: Skip) -> Array:
        """Return the ticks that warps take for what is skipped, which is like the iteration."""
        left_out = skip.times.max(axis=0) * skip.issued
        return np.asarray(np.rint(left_out * self._ticks_an_instruction[skip.rows]), dtype=np.int64)
