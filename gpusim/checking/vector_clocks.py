"""Vector clocks of warps, for barriers that join some warps of a block.

A named barrier orders only the threads that take part in one of its phases; threads that arrive
without waiting release their accesses and acquire none (PTX ISA, bar.sync and bar.arrive). Each row
of a batch (a warp) has a known time for each warp of its block. All threads of a warp take part in
such barriers (else behaviour is undefined): lanes share a clock.
"""

from __future__ import annotations

import numpy as np

from gpusim.machine.state import NAMED_BARRIERS
from gpusim.typing import Array


class VectorClocks:
    """The vector clocks of a batch's rows, (rows, warps), and releases pending at barriers.

    Releases at a barrier without waiting threads are kept for its next phase: phases of one barrier
    come one after the other.
    """

    def __init__(self, rows: int, warps: int) -> None:
        self.known = np.zeros((rows, warps), dtype=np.int64)
        self._released = np.zeros((rows // warps * NAMED_BARRIERS, warps), dtype=np.int64)

    def unfold(self, copies: int) -> None:
        """Give every warp of every block a row of its own."""
        self.known = np.tile(self.known, (copies, 1))
        self._released = np.tile(self._released, (copies, 1))

    def arrive(self, rows: Array, numbers: Array, time: int) -> None:
        """Record the release of warps at barriers without waiting."""
        np.maximum.at(self._released, self._phases(rows, numbers), self._told(rows, time))

    def meet(self, rows: Array, numbers: Array, time: int) -> None:
        """Join the clocks of the warps at a barrier, and its pending releases."""
        phases = self._phases(rows, numbers)
        order = np.argsort(phases, kind="stable")
        mine, which = rows[order], phases[order]
        first = np.flatnonzero(np.append(True, which[1:] != which[:-1]))
        joined = np.maximum.reduceat(self._told(mine, time), first, axis=0)
        joined = np.maximum(joined, self._released[which[first]])
        self._released[which[first]] = 0
        self.known[mine] = np.repeat(joined, np.diff(np.append(first, len(mine))), axis=0)

    def forget(self, rows: Array, numbers: Array) -> None:
        """Drop releases at barriers at which the whole block has arrived."""
        self._released[self._phases(rows, numbers)] = 0

    def _phases(self, rows: Array, numbers: Array) -> Array:
        return np.asarray(rows // self.known.shape[1] * NAMED_BARRIERS + numbers)

    def _told(self, rows: Array, time: int) -> Array:
        """Return the clocks of warps, their own entry set to a time."""
        told: Array = self.known[rows]
        told[np.arange(len(rows)), rows % self.known.shape[1]] = time
        return told
