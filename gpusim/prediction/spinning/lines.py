"""Touched lines of global memory: the first touch comes out of DRAM."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.machine.storage import Allocation
from gpusim.typing import Array


class Lines:
    """The lines of all arrays, each touched or not."""

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        extents = [one.extent for one in allocations]
        self._begin = min((one.start for one in extents), default=0) // LINE_BYTES
        end = max((one.stop for one in extents), default=0) // LINE_BYTES
        self._touched = np.zeros(end - self._begin + 1, dtype=bool)

    def first(self, addresses: Array, on: Array) -> Array:
        """Return the warps that touch a line first; `addresses` and `on` are (warps, 32)."""
        lines = np.where(on, addresses // LINE_BYTES - self._begin, 0)
        are_first = (on & ~self._touched[lines]).any(axis=1)
        self._touched[lines[on]] = True
        return np.asarray(are_first)

    def touch(self, addresses: Array) -> None:
        """Mark the lines of addresses as touched."""
        self._touched[addresses // LINE_BYTES - self._begin] = True
