"""How long an iteration of a loop took, and so how long those take that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.events import Skip
from gpusim.machine.group import Group

Array = np.ndarray[Any, Any]


class Iteration:
    """The last iteration of a batch's warps, by where they come back to.

    `issued` counts the instructions that the batch has issued, each once for all its warps.
    """

    def __init__(self) -> None:
        self.issued = 0
        self._begun: dict[int, tuple[int, Array, Array]] = {}
        self._ticks_an_instruction = np.zeros(1)

    def arrive(self, group: Group, at: Array) -> None:
        """Take note that warps stand at a loop's head, at the times of their rows."""
        now = at[group.rows]
        issued, rows, begin = self._begun.get(group.pc, (self.issued, group.rows, now))
        self._begun[group.pc] = self.issued, group.rows, now
        if np.array_equal(rows, group.rows):
            self._ticks_an_instruction = (now - begin) / max(1, self.issued - issued)

    def takes(self, skip: Skip) -> Array:
        """Return the ticks that warps take for what is skipped, which is like the iteration."""
        left_out = skip.times.max(axis=0) * skip.issued
        return np.asarray(np.rint(left_out * self._ticks_an_instruction)).astype(np.int64)
