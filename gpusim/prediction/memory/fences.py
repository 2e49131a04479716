"""Fences between blocks: the wait until all earlier accesses of an SM have arrived.

A fence queries the parts of the L2 that were accessed, and the farthest determines its latency. An
SM sends one query for warps that arrive shortly after each other. A later warp waits for the next
query, sent at the earliest while the last answers are on their way back. All times are in ticks.
"""

from __future__ import annotations

from gpusim.gpu.device import Device
from gpusim.prediction.arithmetic.ticks import ticks


class Fences:
    """State of an SM's fences: time of its last query, and the earliest time of the next."""

    _alone: int
    _of_one: int
    _of_many: int
    _overlap: int
    _together: int  # ticks after the first warp, for others to share its query
    _begun: int
    _free: int

    def __init__(self, device: Device) -> None:
        latency = device.latency_cycles
        self._alone = ticks(latency.fence)
        self._of_one = ticks(latency.fence_of_one_line)
        self._of_many = ticks(latency.fence_of_many_lines)
        self._overlap = min(self._alone, ticks(latency.fence_overlap))
        self._together = self._alone - self._overlap
        self._begun = -1 - self._together
        self._free = 0

    def passed(self, lines: int, arrived: int, at: int) -> int:
        """Return when a warp that arrives at a time has passed.

        `lines` is the number of lines requested since its last fence; they `arrived` in the L2 at a
        time.
        """
        begin = self._begun if at <= self._begun + self._together else max(at, self._free)
        done = max(begin, at, arrived) + self._lasts(lines)
        self._begun = begin
        self._free = max(self._free, done - self._overlap)
        return done

    def _lasts(self, lines: int) -> int:
        """Return the duration of the answers: that from the farthest of randomly placed lines."""
        if not lines:
            return self._alone
        further = (lines - 1) / (lines + 1) * (self._of_many - self._of_one)
        return self._of_one + round(further)
