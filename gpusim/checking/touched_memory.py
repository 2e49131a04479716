"""An observer that marks the bytes of global memory that a launch reads and writes."""

from __future__ import annotations

import mmap
import sys
from typing import NamedTuple

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Observer, Step
from gpusim.launch.grid import Launch
from gpusim.typing import Array

WORD = 4
READ, WRITTEN, UPDATED = 1, 2, 4  # by loads; by stores; by atomics and volatile accesses
_WIDEST = 16  # bytes of an access
_NEAR_BITS, _MOST_RANGES = 20, 4096
_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0


class Touched(NamedTuple):
    """The part of an allocation that a launch touches: marks of elements, `each` bytes long.

    `marks` begin with the byte `begin` of the allocation; `lines` are the source lines by mark.
    """

    begin: int
    each: int
    marks: Array
    lines: dict[int, tuple[int, ...]]


class _Range(NamedTuple):
    """The first and the last address of some accesses, with their mark and line."""

    first: int
    last: int
    mark: int
    line: int


class TouchedMemory(Observer):
    """Marks the bytes between two addresses that a launch accesses."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin, self._end = begin, end

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch: an element is as wide as the narrowest access, up to a word."""
        rows = [row for row in program.instructions if _is_global(row)]
        widths = [row.memory.dtype.itemsize for row in rows if row.memory is not None]
        self.each = min([WORD, *widths])
        size = -(-(self._end - self._begin) // self.each)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._marks: Array = np.frombuffer(mmap.mmap(-1, max(size, 1), flags=flags), np.uint8)
        self._mark_of = [_mark_of(row) if _is_global(row) else 0 for row in program.instructions]
        self._seen: list[_Range] = []

    def step(self, step: Step) -> None:
        """Mark the bytes of one step."""
        if OPS[step.instruction.op].kind == "await_bulk":
            self._mark_copies(step)
        mark = self._mark_of[step.pc]
        if not mark or step.addresses is None:
            return
        memory = step.instruction.memory
        assert memory is not None
        shape = np.broadcast_shapes(step.addresses.shape, step.on.shape)
        found = np.broadcast_to(step.addresses, shape)[np.broadcast_to(step.on, shape)]
        found = found[(found >= self._begin) & (found < self._end)]
        if not len(found):
            return
        first = (found - self._begin) // self.each
        for place in range(max(memory.width_bytes // self.each, 1)):
            self._marks[np.minimum(first + place, len(self._marks) - 1)] |= mark
        made = _Range(int(found.min()), int(found.max()), mark, step.instruction.line)
        self._seen.append(made)
        if len(self._seen) > _MOST_RANGES:
            self._seen = self._ranges()

    def _mark_copies(self, step: Step) -> None:
        """Mark the bytes of bulk copies to global memory that end: number, ..., size, address."""
        for _, _, _, size, _, address, *_ in step.values[0].tolist():
            if address < 0:  # of a tensor's box: not known
                continue
            first = (address - self._begin) // self.each
            self._marks[first : first + size // self.each] |= WRITTEN
            last = address + size - self.each
            self._seen.append(_Range(address, last, WRITTEN, step.instruction.line))

    def of(self, address: int, size: int) -> Touched | None:
        """Return the accessed bytes of an allocation; None for none."""
        end = address + size
        seen = [one for one in self._ranges() if one.first < end and one.last >= address]
        if not seen:
            return None
        first = max(address, min(one.first for one in seen))
        last = min(end, max(one.last for one in seen) + _WIDEST)
        place = (first - self._begin) // self.each
        marks = self._marks[place : -(-(last - self._begin) // self.each)]
        lines: dict[int, set[int]] = {}
        for one in seen:
            lines.setdefault(one.mark, set()).add(one.line)
        begin = self._begin + place * self.each - address
        return Touched(begin, self.each, marks, {m: tuple(sorted(n)) for m, n in lines.items()})

    def _ranges(self) -> list[_Range]:
        """Return the recorded ranges, with neighbours of a line merged."""
        held: dict[tuple[int, int, int], _Range] = {}
        for one in self._seen:
            key = one.first >> _NEAR_BITS, one.mark, one.line
            known = held.get(key, one)
            first, last = min(one.first, known.first), max(one.last, known.last)
            held[key] = one._replace(first=first, last=last)
        return list(held.values())


def _is_global(row: Instruction) -> bool:
    return row.memory is not None and row.memory.space in ("global", "generic")


def _mark_of(row: Instruction) -> int:
    assert row.memory is not None
    kind = OPS[row.op].kind
    if kind == "atomic" or row.memory.volatile:
        return UPDATED
    return READ if kind == "load" else WRITTEN
