"""Which lines of global memory a grid has touched: the first time they come out of DRAM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpusim.machine.storage import Allocation
from gpusim.memory import LINE_BYTES

Array = np.ndarray[Any, Any]


class Lines:
    """The lines of all arrays, and which of them were touched."""

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        extents = [one.extent for one in allocations]
        self._begin = min((one.start for one in extents), default=0) // LINE_BYTES
        end = max((one.stop for one in extents), default=0) // LINE_BYTES
        self._touched = np.zeros(end - self._begin + 1, dtype=bool)

    def first(self, addresses: Array, on: Array) -> Array:
        """Return which warps touch a line that nobody has touched; both are (warps, 32)."""
        lines = np.where(on, addresses // LINE_BYTES - self._begin, 0)
        are_first = (on & ~self._touched[lines]).any(axis=1)
        self._touched[lines[on]] = True
        return np.asarray(are_first)
