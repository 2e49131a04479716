"""What warps of a block know of each other where a barrier joins some of them: vector clocks.

A barrier with a number orders only the threads that take part in one of its phases, and those who
arrive without waiting release what they did and learn nothing (PTX ISA, bar.sync and bar.arrive).
Each row of a batch (a warp) keeps for each warp of its block up to when it knows of it. All
threads of a warp take part in such a barrier, or what they do is undefined: lanes share a clock.
"""

from __future__ import annotations

import numpy as np

from gpusim.checking.touch import Array
from gpusim.machine.state import NAMED_BARRIERS


class Meetings:
    """The vector clocks of a batch's rows, (rows, warps), and what barriers were told.

    What threads released at a barrier where nobody waited is kept for its next phase: phases of
    one barrier come one after the other.
    """

    def __init__(self, rows: int, warps: int) -> None:
        self.known = np.zeros((rows, warps), dtype=np.int64)
        self._released = np.zeros((rows // warps * NAMED_BARRIERS, warps), dtype=np.int64)

    def unfold(self, copies: int) -> None:
        """Give every warp of every block a row of its own."""
        self.known = np.tile(self.known, (copies, 1))
        self._released = np.tile(self._released, (copies, 1))

    def arrive(self, rows: Array, numbers: Array, time: int) -> None:
        """Take note of what warps release at barriers."""
        np.maximum.at(self._released, self._phases(rows, numbers), self._told(rows, time))

    def meet(self, rows: Array, numbers: Array, time: int) -> None:
        """Let warps know what all those know, or have released, who came to their barrier."""
        phases = self._phases(rows, numbers)
        order = np.argsort(phases, kind="stable")
        mine, which = rows[order], phases[order]
        first = np.flatnonzero(np.append(True, which[1:] != which[:-1]))
        joined = np.maximum.reduceat(self._told(mine, time), first, axis=0)
        joined = np.maximum(joined, self._released[which[first]])
        self._released[which[first]] = 0
        self.known[mine] = np.repeat(joined, np.diff(np.append(first, len(mine))), axis=0)

    def forget(self, rows: Array, numbers: Array) -> None:
        """Forget what was released at barriers that all of a block has come to."""
        self._released[self._phases(rows, numbers)] = 0

    def _phases(self, rows: Array, numbers: Array) -> Array:
        return np.asarray(rows // self.known.shape[1] * NAMED_BARRIERS + numbers)

    def _told(self, rows: Array, time: int) -> Array:
        """Return what warps know, themselves included, up to a time."""
        told: Array = self.known[rows]
        told[np.arange(len(rows)), rows % self.known.shape[1]] = time
        return told
