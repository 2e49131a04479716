"""Asynchronous copies to shared memory: elements in flight until threads wait for them.

Until the thread that issued a copy waits for its group, its destination has the old contents, as in
most runs on an H200 (PTX ISA, cp.async; families of pairs in `tests/checking`). Lanes are numbered
throughout the blocks of a batch, folded or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gpusim.launch.tensor_maps import Box
from gpusim.machine.lane_elements import LaneElements
from gpusim.machine.storage import Allocation
from gpusim.typing import Array


@dataclass(frozen=True)
class Stored:
    """Values for elements of a memory, each with its lane and the group of its copy."""

    elements: Array
    index: Array
    values: Array
    lanes: Array
    groups: Array

    def take(self, which: Array) -> Stored:
        """Return some of the values."""
        parts = (self.index, self.values, self.lanes, self.groups)
        return Stored(self.elements, *(part[which] for part in parts))


class PendingCopies:
    """The pending copies of a batch; `lanes` is the number of its lanes.

    It is 0 where a program has none: compilers wait by the same instructions for loads.
    """

    def __init__(self, lanes: int) -> None:
        self._committed = np.zeros(lanes, dtype=np.int32)
        self._pending: list[Stored] = []

    @property
    def stored(self) -> Sequence[Stored]:
        """The pending values, in the order of their copies, a word after the other."""
        return self._pending

    @property
    def committed(self) -> Array:
        """The number of groups that each lane has made."""
        return self._committed

    def begin(
        self,
        lanes: Array,
        touched: Sequence[LaneElements],
        values: Sequence[Array],
    ) -> None:
        """Take the values that lanes, (copies, rows, 32), are to store to elements."""
        for one in touched:
            if one.elements is None:
                continue
            for position, value in enumerate(values):
                index, given, taking, lane = np.broadcast_arrays(
                    one.index + position, value, one.mine, lanes
                )
                which = lane[taking]
                self._pending.append(
                    Stored(
                        one.elements, index[taking], given[taking], which, self._committed[which]
                    )
                )

    def commit(self, lanes: Array) -> None:
        """Make a group of the copies that lanes have issued since their last one."""
        if len(self._committed):
            self._committed[lanes] += 1

    def land(self, lanes: Array, allowed: int) -> bool:
        """Store the awaited groups, all but the last `allowed`; return whether there were any."""
        if not self._pending:
            return False
        ended = np.zeros_like(self._committed)
        ended[lanes] = self._committed[lanes] - allowed
        left, has_landed = [], False
        for one in self._pending:
            done = one.groups < ended[one.lanes]
            landing = one if done.all() else one.take(done)
            landing.elements[landing.index] = landing.values
            has_landed |= bool(len(landing.index))
            if landing is not one:
                left.append(one.take(~done))
        self._pending = left
        return has_landed


@dataclass(frozen=True)
class Bulk:
    """A copy of a warp, by its row, between `place` in a block's shared memory and an array.

    One to global memory has the number of its group, above 0, in place of a barrier, and its
    `reduction`, if any. A copy to shared memory has its destination in `block`; without an array
    its source begins at `begin` in the shared memory of its warp's block. With a tensor map it is
    of a `box` of the array.
    """

    row: int
    place: int
    array: Allocation | None
    begin: int
    size: int
    barrier: int
    group: int
    number: int
    block: int
    reduction: str = ""
    box: Box | None = None

    @property
    def told(self) -> tuple[int, ...]:
        """The copy as reported to observers, with an address, -1 of a box."""
        address = self.begin if self.array is None else self.array.start + self.begin
        address = -1 if self.box is not None else address
        where = self.number, self.row, self.place, self.size, self.barrier
        return (*where, address, self.group, self.block)


@dataclass
class BulkCopies:
    """The pending bulk copies of a batch, the number of groups of each row, and of copies."""

    pending: list[Bulk] = field(default_factory=list)
    groups: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def take(self, which: list[Bulk]) -> list[Bulk]:
        """Return some of the copies, which are no longer pending."""
        self.pending = [one for one in self.pending if one not in which]
        return which
