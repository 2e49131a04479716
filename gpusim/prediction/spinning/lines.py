"""Which lines of global memory a grid has touched: the first time they come out of DRAM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpusim.gpu.memory import LINE_BYTES
from gpusim.machine.storage import Allocation

Array = np.ndarray[Any, Any]

MOST_AT_ONCE = 1 << 20  # lines that are worked out together


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

    def touch(self, addresses: Array) -> None:
        """Take note of addresses that are touched."""
        self._touched[addresses // LINE_BYTES - self._begin] = True

    def touch_again(self, addresses: Array, on: Array, times: Array, strides: Array) -> None:
        """Take note of what a loop touches so many more `times`, moving on by `strides` bytes.

        All but `times`, which are (warps, 1), are (warps, 32); strides are whole lines.
        """
        lines, step = addresses // LINE_BYTES - self._begin, strides // LINE_BYTES
        is_new = on & (times > 0)
        is_new[:, 1:] &= ~on[:, :-1] | (lines[:, 1:] != lines[:, :-1])
        lines, step = lines[is_new], step[is_new]
        times = np.broadcast_to(times, is_new.shape)[is_new]
        together = max(1, MOST_AT_ONCE // max(1, len(lines)))
        for first in range(1, int(times.max(initial=0)) + 1, together):
            number = np.arange(first, first + together)[:, None]
            later = (lines + step * number)[number <= times]
            self._touched[later[(later >= 0) & (later < len(self._touched))]] = True
