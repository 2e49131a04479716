"""The observer of footprints: the sectors of global memory accessed by each source line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES, marked
from gpusim.isa.ops import ANY_ARRAY, OPS, Instruction, Program
from gpusim.launch.events import Observer, Ran, Step
from gpusim.launch.grid import Launch
from gpusim.machine.storage import Allocation
from gpusim.typing import Array

Place = tuple[int, str, str]  # line, access, array

SECTOR_BITS = np.int64(SECTOR_BYTES.bit_length() - 1)


@dataclass(frozen=True)
class Footprint:
    """The part of an array accessed by the loads, or the stores, of a source line.

    `requested_sectors` is the sum over all accesses of warps, `distinct_sectors` counts each
    sector once. Instructions that may access any array have one for all `arrays` they touch.
    """

    line: int
    access: str
    arrays: tuple[str, ...]
    requested_sectors: int
    distinct_sectors: int

    def to_dict(self) -> dict[str, Any]:
        """Return the footprint as plain data."""
        return {**asdict(self), "arrays": list(self.arrays)}


class Footprints(Observer):
    """Marks the sectors that are touched, a byte for each, by line, access and array.

    The operating system allocates only touched pages: a 32nd of the footprint, for each line.
    """

    def __init__(self, allocations: Mapping[str, Allocation]) -> None:
        extents = [one.extent for one in allocations.values()]
        self._first = np.int64(min((e.start for e in extents), default=0)) >> SECTOR_BITS
        self._sectors = {name: self._range(one.extent) for name, one in allocations.items()}
        self._marked: dict[Place, Array] = {}
        self._pcs: dict[Place, list[int]] = {}

    def _range(self, extent: range) -> slice:
        """Return the slice of the marks for an extent of addresses."""
        last = -(-extent.stop // SECTOR_BYTES)
        return slice(int((extent.start >> SECTOR_BITS) - self._first), int(last - self._first))

    def begin(self, program: Program, launch: Launch) -> None:
        """Prepare for a launch."""
        places = [_place(instruction) for instruction in program.instructions]
        for pc, place in enumerate(places):
            if place is not None:
                self._pcs.setdefault(place, []).append(pc)
        size = max((mine.stop for mine in self._sectors.values()), default=0)
        self._marked = {place: np.zeros(size, dtype=bool) for place in self._pcs}
        self._marks = [None if place is None else self._marked[place] for place in places]

    def step(self, step: Step) -> None:
        """Mark the sectors that a step touches."""
        marks = self._marks[step.pc]
        if marks is None:
            return
        assert step.addresses is not None
        addresses, on = np.broadcast_arrays(step.addresses, step.on)
        marks[(addresses[on] >> SECTOR_BITS) - self._first] = True

    def ran(self, ran: Ran) -> None:
        """Mark the sectors that compiled code touched."""
        first = ran.first_sector - int(self._first)
        for key, touched in ran.touched.items():
            marks, more = self._marked[key][max(first, 0) :], touched[max(-first, 0) :]
            both = min(len(marks), len(more))
            for part in marked(more[:both]):
                marks[:both][part] |= more[:both][part]

    def found(self, requested: Array) -> Iterator[Footprint]:
        """Yield the footprints, given the number of sectors requested by each pc."""
        for (line, access, array), marks in sorted(self._marked.items()):
            distinct = int(np.count_nonzero(marks))
            if distinct:
                asked = int(requested[self._pcs[line, access, array]].sum())
                yield Footprint(line, access, self._arrays(array, marks), asked, distinct)

    def _arrays(self, name: str, marks: Array) -> tuple[str, ...]:
        if name != ANY_ARRAY:
            return (name,)
        return tuple(name for name, mine in self._sectors.items() if marks[mine].any())


def _place(instruction: Instruction) -> Place | None:
    """Return the key of an instruction's footprint, None if it has none."""
    found, op = instruction.memory, OPS[instruction.op]
    if found is None or found.space != "global" or op.reads_memory == op.writes_memory:
        return None  # atomics do both
    return instruction.line, op.kind, found.name
