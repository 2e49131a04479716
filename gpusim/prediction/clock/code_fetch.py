"""Instruction fetch: cost of code larger than the instruction caches, in lines of 128 bytes.

Cached code was run before, by other warps or by the warp itself: hits are determined by LRU
replacement over a warp's own line sequence. Misses come out of the L2, or out of DRAM for the first
wave of a launch with a cold L2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

import numpy as np

from gpusim.gpu.device import Device
from gpusim.gpu.memory import LINE_BYTES
from gpusim.isa.ops import OPS, Program
from gpusim.launch.grid import ComputeCapability
from gpusim.prediction.arithmetic.ticks import ticks
from gpusim.prediction.streams import WarpStream, constants

# NVIDIA's binary utilities: 128 bits an instruction from compute capability 7.0 on, 64 before.
_WIDE_FROM_CC_MAJOR, _WIDE_BYTES, _NARROW_BYTES = 7, 16, 8


def instruction_bytes(cc: ComputeCapability) -> int:
    """Return the size of an instruction in bytes."""
    return _WIDE_BYTES if cc.major >= _WIDE_FROM_CC_MAJOR else _NARROW_BYTES


def code_bytes(program: Program, cc: ComputeCapability) -> int:
    """Return the size of a program's code in bytes, without pseudo-instructions."""
    issued = sum(OPS[instruction.op].issued for instruction in program.instructions)
    return issued * instruction_bytes(cc)


class CodeFetch:
    """Fetch times of a program's code lines on a device; a line is 128 bytes.

    Code larger than an SM's caches comes from DRAM for the first wave of a launch with a "cold" L2:
    its blocks are then `unlike_later` ones. Code that `is_cached` costs no fetch at any length.
    """

    def __init__(
        self, program: Program, device: Device, l2: str, *, is_cached: bool = False
    ) -> None:
        capacity, interval = device.capacity, device.interval_cycles
        size = instruction_bytes(device.cc)
        issued = [OPS[instruction.op].issued for instruction in program.instructions]
        offsets = list(accumulate(issued, initial=0))
        self._line_of_pc = np.array(offsets) * size // LINE_BYTES
        self._is_cached = is_cached or offsets[-1] * size <= capacity.instruction_bytes
        is_first_late = l2 != "warm" and offsets[-1] * size > capacity.l15_bytes
        self.unlike_later = is_first_late and not is_cached
        self._levels = (
            (capacity.instruction_bytes // LINE_BYTES, 0),
            (capacity.l15_bytes // LINE_BYTES, ticks(interval.instruction_line)),
        )
        self._beyond = ticks(interval.instruction_line_l2)
        self._out_of_dram = ticks(interval.instruction_line_dram)

    def of(self, stream: WarpStream, *, is_first: bool = False) -> Mapping[int, int]:
        """Return the ticks of line fetches, by position in a stream where a line begins.

        A line begins at least that long after the line before; empty if the caches hold all code.
        For a block that `is_first`, no other has fetched it before.
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
        """Yield positions in a stream where another line of code begins, and the line."""
        lines = self._line_of_pc[stream.pc]
        begins = np.flatnonzero(np.diff(lines, prepend=-1))
        yield from zip(begins.tolist(), lines[begins].tolist(), strict=True)

    def _ticks(self, line: int, caches: list[LruCache], beyond: int) -> int:
        found = [cache.use(line) for cache in caches]
        return next((t for (_, t), hit in zip(self._levels, found, strict=True) if hit), beyond)


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


class LruCache:
    """An LRU cache of `size` lines; lines of `before` are already used, in order."""

    def __init__(self, size: int, before: Iterable[int]) -> None:
        self._size = size
        self._held: dict[int, None] = {}
        for line in before:
            self.use(line)

    def use(self, line: int) -> bool:
        """Use a line; return whether it was a hit."""
        hit = line in self._held
        self._held.pop(line, None)
        self._held[line] = None
        if len(self._held) > self._size:
            del self._held[next(iter(self._held))]
        return hit
