"""What code costs that is longer than the instruction caches: it comes 128 bytes at a time.

What the caches hold was run before, by other warps or by the warp itself: a warp's lines are told
apart by what all of its code came to since, as in caches that keep what was used last. What they
do not hold comes out of the L2, or out of DRAM where the first blocks of a launch find that empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

from gpusim.gpu.device import Device
from gpusim.gpu.memory import LINE_BYTES
from gpusim.isa.ops import OPS, Program
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.clock.lru_cache import LruCache
from gpusim.prediction.streams import WarpStream

# NVIDIA's binary utilities: 128 bits an instruction from compute capability 7.0 on, 64 before.
_WIDE_FROM_CC_MAJOR, _WIDE_BYTES, _NARROW_BYTES = 7, 16, 8


def instruction_bytes(cc: ComputeCapability) -> int:
    """Return how long an instruction is."""
    return _WIDE_BYTES if cc.major >= _WIDE_FROM_CC_MAJOR else _NARROW_BYTES


def code_bytes(program: Program, cc: ComputeCapability) -> int:
    """Return how long a program's code is, without what stands for nothing in the machine."""
    issued = sum(OPS[instruction.op].issued for instruction in program.instructions)
    return issued * instruction_bytes(cc)


class CodeFetch:
    """Tells how long lines of a program's code take on a device; a line is 128 bytes.

    Of code that no cache of an SM keeps from one launch to the next, the first blocks of a launch
    that finds the L2 "cold" wait for DRAM: they are `unlike_later` ones.
    """

    def __init__(self, program: Program, device: Device, l2: str) -> None:
        capacity, interval = device.capacity, device.interval_cycles
        size = instruction_bytes(device.cc)
        issued = [OPS[instruction.op].issued for instruction in program.instructions]
        offsets = list(accumulate(issued, initial=0))
        self._line_of_pc = [offset * size // LINE_BYTES for offset in offsets]
        self._is_cached = offsets[-1] * size <= capacity.instruction_bytes
        self.unlike_later = l2 == "cold" and offsets[-1] * size > capacity.l15_bytes
        self._levels = (
            (capacity.instruction_bytes // LINE_BYTES, 0),
            (capacity.l15_bytes // LINE_BYTES, ticks(interval.instruction_line)),
        )
        self._beyond = ticks(interval.instruction_line_l2)
        self._out_of_dram = ticks(interval.instruction_line_dram)

    def of(self, stream: WarpStream, *, is_first: bool = False) -> Mapping[int, int]:
        """Return, by place in a stream where another line begins, the ticks the line takes.

        It begins no sooner after the line before it; nothing is said where the caches hold all.
        Of a block that `is_first` no other has run it before.
        """
        if self._is_cached:
            return {}
        lines = dict(self._lines(stream))
        before = dict.fromkeys(lines.values())
        caches = [LruCache(size, before) for size, _ in self._levels]
        unseen = set(before) if is_first and self.unlike_later else set()
        found = {}
        for place, line in lines.items():
            beyond = self._out_of_dram if line in unseen else self._beyond
            found[place] = self._ticks(line, caches, beyond)
            unseen.discard(line)
        return found

    def _lines(self, stream: WarpStream) -> Iterator[tuple[int, int]]:
        """Yield where in a stream another line of code begins, and which."""
        last = -1
        for place, pc in enumerate(stream.pc.tolist()):
            line = self._line_of_pc[pc]
            if line != last:
                last = line
                yield place, line

    def _ticks(self, line: int, caches: list[LruCache], beyond: int) -> int:
        found = [cache.use(line) for cache in caches]
        return next((t for (_, t), hit in zip(self._levels, found, strict=True) if hit), beyond)
