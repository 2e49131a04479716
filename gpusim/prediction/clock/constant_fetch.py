"""Constant fetch: cost of constants in `__constant__` arrays.

They come to an SM some lines at a time, out of the L2 or DRAM, at the first wave's reads; then 64
bytes at a time out of the L1.5, into a cache with LRU replacement.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusim.gpu.device import Device
from gpusim.isa.ops import Program
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.lru_cache import LruCache
from gpusim.prediction.streams import WarpStream, constants


class ConstantFetch:
    """Additional latency of constants of a program that miss their cache on a device.

    Blocks of the first wave are `unlike_later` ones if a program may read constants other than the
    launch's own.
    """

    def __init__(self, program: Program, device: Device, l2: str) -> None:
        latency = device.latency_cycles
        self._line_of_pc = np.array(constants.lines(program), dtype=np.int64)
        are_read = bool((self._line_of_pc != constants.NOWHERE).any())
        self.unlike_later = are_read or constants.are_looked_up(program)
        self._size = device.capacity.constant_bytes // constants.LINE_BYTES
        self._piece = device.capacity.constant_piece_bytes // constants.LINE_BYTES
        self._behind = ticks(latency.constant_l15)
        self._first = ticks((latency.dram if l2 != "warm" else latency.l2) - latency.constant)

    def of(self, stream: WarpStream, *, is_first: bool = False) -> Mapping[int, int]:
        """Return the additional ticks of constants, by position in a stream.

        For a block that `is_first`, no other has read any before.
        """
        if not self.unlike_later:
            return {}
        lines = self._lines(stream)
        before = () if is_first else lines.values()
        cache, brought = LruCache(self._size, before), {line // self._piece for line in before}
        late = {}
        for place, line in lines.items():
            if not cache.use(line):
                is_brought = line // self._piece in brought
                late[place] = self._behind if is_brought else self._first
                brought.add(line // self._piece)
        return late

    def _lines(self, stream: WarpStream) -> dict[int, int]:
        """Return the lines of constants, by position in a stream."""
        lines = np.maximum(stream.constant, self._line_of_pc[stream.pc])
        places = np.flatnonzero(lines != constants.NOWHERE)
        return dict(zip(places.tolist(), lines[places].tolist(), strict=True))
