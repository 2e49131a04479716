"""Fences between blocks: how long warps wait until all has arrived that their SM has sent.

The parts of the L2 that got some of it are asked, and the farthest counts. An SM asks for warps
that come shortly after each other together. Who comes later waits until the next time, which may
begin while the last answers are on their way back. All times are in ticks.
"""

from __future__ import annotations

from gpusim.gpu.device import Device
from gpusim.prediction.arithmetic.ticks import ticks


class Fences:
    """When an SM asked last for its warps, and when it may ask again."""

    _alone: int
    _of_one: int
    _of_many: int
    _overlap: int
    _together: int  # so shortly after the first of them others come to the same
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
        """Return when a warp that comes at a time is through.

        So many lines have been asked for since it came to a fence last, and have `arrived` in the
        L2 at a time.
        """
        begin = self._begun if at <= self._begun + self._together else max(at, self._free)
        done = max(begin, at, arrived) + self._lasts(lines)
        self._begun = begin
        self._free = max(self._free, done - self._overlap)
        return done

    def _lasts(self, lines: int) -> int:
        """Return how long the answers take: that from the farthest of lines at random places."""
        if not lines:
            return self._alone
        further = (lines - 1) / (lines + 1) * (self._of_many - self._of_one)
        return self._of_one + round(further)
