"""The instructions that warps of a batch executed, as columns, and their streams by block.

A warp's time is the number of its instructions so far; warps of a block are equally far when a
barrier opens. So streams do not depend on the order in which an evaluator runs the warps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.launch.events import Placement
from gpusim.prediction.streams import distances
from gpusim.prediction.streams.stream import MOST_BEHIND, BlockStream, Loop, WarpStream, rolled
from gpusim.prediction.streams.touches import Touches, first_touches

Array = np.ndarray[Any, Any]
LoopsOf = Callable[[int, list[Array]], list[list[Loop]]]

# Columns of each instruction, with their types.
TYPES: Mapping[str, type[np.generic]] = {
    "is_on": np.bool_,
    "is_taken": np.bool_,
    "cost": np.int32,
    "lines": np.int32,
    "wavefronts": np.int32,
    "lanes": np.uint32,
    "lowest": np.int64,
    "gaps": np.int32,
    "constant": np.int32,
}
NO_LINE = np.iinfo(np.int64).max  # above all lines


@dataclass(frozen=True)
class Executed:
    """Instructions of a batch by index: the `rows` of warps, the `pc`, and the warp's `times`.

    `values` are the columns of TYPES, shaped (copies, indices); `clock` is the time of each row
    after them.
    """

    placement: Placement
    rows: Array
    pc: Array
    times: Array
    values: Mapping[str, Array]
    clock: Array

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _blocks(self) -> Array:
        if self.placement.folded:
            return np.zeros(len(self), dtype=np.int64)
        return np.asarray(self.rows // self.placement.warps_per_block)

    def in_order(self, touches: Touches) -> Touches:
        """Return touches of these instructions in the order of time, within each block."""
        times = self.times[touches.place % len(self)] if len(self) else touches.step
        touches = replace(touches, step=times)
        if (np.diff(touches.block) >= 0).all() and not len(touches.step):
            return touches
        is_after = (np.diff(touches.block) > 0) | (np.diff(times) >= 0)
        if is_after.all() and (np.diff(touches.block) >= 0).all():
            return touches
        return touches.at(np.lexsort((touches.place, times, touches.block)))

    def columns(self, touches: Touches, stored: Touches, are_loads: Array) -> dict[str, Array]:
        """Return the columns of streams, shaped (copies, indices).

        `are_loads` tells by pc which ones load from global memory. In place of `earlier` columns
        have the lowest line of each load.
        """
        shape = self.placement.copies, len(self)
        fresh, joins, begun = first_touches(touches, math.prod(shape))
        written, _, _ = first_touches(stored, math.prod(shape))
        loads = np.flatnonzero(are_loads[self.pc])
        return {
            "pc": np.broadcast_to(self.pc.astype(np.int32), shape),
            **self.values,
            "fresh": fresh.reshape(shape).astype(np.int32),
            "written": written.reshape(shape).astype(np.int32),
            "joins": joins.reshape(shape),
            "behind": self._behind(begun.reshape(shape), loads),
            "apart": self._apart(loads),
        }

    def _behind(self, begun: Array, loads: Array) -> Array:
        """Return the number of loads of a warp since `begun`, the first touch of the data."""
        behind = np.full(begun.shape, MOST_BEHIND, dtype=np.int32)
        copy, at = np.nonzero(begun >= 0)
        since, row = begun[copy, at], self.rows[at]
        longest = 1 + int(self.times.max(initial=0))
        own = np.sort(self.rows[loads] * longest + self.times[loads])
        before = np.searchsorted(own, row * longest + self.times[at])
        count = before - np.searchsorted(own, row * longest + since)
        behind[copy, at] = np.minimum(count, MOST_BEHIND)
        return behind

    def _apart(self, loads: Array) -> Array:
        """Return the distances of loads from the next warp's, where warps load at one time."""
        apart = np.zeros((self.placement.copies, len(self)), dtype=np.int32)
        where = self._blocks[loads], self.times[loads], self.pc[loads]
        order = loads[np.lexsort((self.rows[loads], *where[::-1]))]
        keys = np.stack([self._blocks[order], self.times[order], self.pc[order]])
        is_next = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
        lowest, gaps = (self.values[name][:, order] for name in ("lowest", "gaps"))
        apart[:, order] = distances.to_next_warp(lowest, gaps, is_next)
        return apart

    def streams(self, columns: dict[str, Array], loops_of: LoopsOf) -> list[BlockStream]:
        """Return the streams of the batch's blocks, one object for equal ones."""
        order = np.argsort(self.rows, kind="stable")
        counts = np.bincount(self.rows, minlength=self.placement.rows)
        places = np.split(order, np.cumsum(counts)[:-1])
        first: dict[bytes, BlockStream] = {}
        known: dict[bytes, BlockStream] = {}
        streams = []
        for position in range(len(self.placement.blocks)):
            copy, mine = self._block(position, places)
            loops = loops_of(position, mine)
            begun = self._begun(columns, copy, mine, loops)
            if begun not in first:
                block = _stream(columns, copy, mine, loops)
                first[begun] = known.setdefault(block.key, block)
            streams.append(first[begun])
        return streams

    def _block(self, position: int, places: list[Array]) -> tuple[int, list[Array]]:
        """Return the copy of a block, and the indices of its warps."""
        if self.placement.folded:
            return position, places
        warps = self.placement.warps_per_block
        return 0, places[position * warps : (position + 1) * warps]

    def _begun(
        self,
        columns: dict[str, Array],
        copy: int,
        places: list[Array],
        loops: list[list[Loop]],
    ) -> bytes:
        """Return a key, equal for blocks with equal columns.

        Addresses count relative to the block's lowest. Blocks of a folded batch share their path.
        """
        here: Any = slice(None) if self.placement.folded else np.concatenate(places)
        own = {name: column[copy][here] for name, column in columns.items()}
        is_load = own["lowest"] >= 0
        begin = own["lowest"].min(where=is_load, initial=NO_LINE)
        own["lowest"] = np.where(is_load, own["lowest"] - begin, -1)
        parts = [column.tobytes() for column in own.values()]
        return b"".join([*parts, repr(([*map(len, places)], loops)).encode()])


def _stream(
    columns: dict[str, Array], copy: int, places: list[Array], loops: list[list[Loop]]
) -> BlockStream:
    """Return the stream of a block, from the indices of its warps."""
    made = []
    for mine, own_loops in zip(places, loops, strict=True):
        own = {name: column[copy][mine] for name, column in columns.items()}
        earlier = distances.to_earlier(own.pop("lowest"))
        made.append(rolled(WarpStream(**own, earlier=earlier, loops=tuple(own_loops))))
    return BlockStream(tuple(made))
