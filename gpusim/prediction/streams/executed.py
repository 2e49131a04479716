"""The instructions that warps of some blocks executed, as columns, and their streams by block.

A warp's time is the number of its instructions so far; warps of a block are equally far when a
barrier opens. So streams do not depend on the order in which an evaluator runs the warps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gpusim.prediction.streams import distances
from gpusim.prediction.streams.folding import Gap, folded, steady, written_out
from gpusim.prediction.streams.instruction_ids import numbered
from gpusim.prediction.streams.instruction_table import (
    MOST_BEHIND,
    InstructionTable,
    columns_of_plain,
)
from gpusim.prediction.streams.ordering import stable_order
from gpusim.prediction.streams.stream import BlockStream, WarpStream
from gpusim.prediction.streams.touches import Touches, first_touches
from gpusim.typing import Array


@dataclass(frozen=True)
class Executed:
    """Instructions of blocks, warp after warp, each in its order: `begins` of warps, and the end.

    `contents` are numbers of the columns that all have. Of those `at` some places, the accesses,
    there are the warp's `times`, and `values` by the columns of TYPES. At `gaps` iterations of a
    loop are omitted.
    """

    warps_per_block: int
    begins: Array
    contents: Array
    at: Array
    times: Array
    values: Mapping[str, Array]
    gaps: list[Gap] = field(default_factory=list)

    @cached_property
    def pc(self) -> Array:
        """The instruction of each access."""
        return columns_of_plain(self.contents[self.at])["pc"]

    @cached_property
    def rows(self) -> Array:
        """The warp of each access, counted through all blocks."""
        counts = np.diff(np.searchsorted(self.at, self.begins))
        return np.repeat(np.arange(len(counts)), counts)

    def columns(self, touches: Touches, are_loads: Array) -> dict[str, Array]:
        """Return the columns of accesses; `are_loads` tells by pc what loads from global memory.

        Places of touches are numbers of accesses.
        """
        times = self.times[touches.place] if len(self.times) else touches.step
        if self.gaps:
            times = np.where(touches.place < 0, touches.step, times)
        touches = replace(touches, step=times)
        fresh, written, joins, begun = first_touches(touches, len(self.at))
        loads = np.flatnonzero(are_loads[self.pc])
        values = dict(self.values)
        lowest = values.pop("lowest")
        return {
            **values,
            "fresh": fresh,
            "written": written,
            "joins": joins,
            "behind": self._behind(begun, loads),
            "apart": self._apart(lowest, loads),
            "earlier": distances.to_earlier(lowest, self.rows),
        }

    def _behind(self, begun: Array, loads: Array) -> Array:
        """Return the number of loads of a warp since `begun`, the first touch of the data."""
        behind = np.full(len(self.at), MOST_BEHIND, dtype=np.int32)
        at = np.flatnonzero(begun >= 0)
        behind[at] = 0
        at = at[begun[at] != self.times[at]]
        longest = 1 + int(self.times.max(initial=0))
        own = self.rows[loads] * longest + self.times[loads]
        before = np.searchsorted(loads, at)
        since = np.searchsorted(own, self.rows[at] * longest + begun[at])
        behind[at] = np.minimum(before - since, MOST_BEHIND)
        return behind

    def _apart(self, lowest: Array, loads: Array) -> Array:
        """Return the distances of loads from the next warp's, where warps load at one time."""
        apart = np.zeros(len(self.at), dtype=np.int32)
        block, pc = self.rows[loads] // self.warps_per_block, self.pc[loads]
        time = self.times[loads]
        spans = 1 + int(time.max(initial=0)), 1 + int(pc.max(initial=0))
        together = (block * spans[0] + time) * spans[1] + pc
        order = stable_order(together)
        loads, together = loads[order], together[order]
        is_next = together[1:] == together[:-1]
        apart[loads] = distances.to_next_warp(lowest[loads], self.values["gaps"][loads], is_next)
        return apart

    def streams(
        self, columns: Mapping[str, Array], are_barriers: Array | None = None
    ) -> Iterator[BlockStream]:
        """Yield the streams of the blocks, one object for equal ones, and release their contents.

        `columns` are those of accesses. Given `are_barriers` by pc, what repeats is stored once.
        """
        known: dict[tuple[bytes, tuple[int, ...], tuple[Gap, ...]], BlockStream] = {}
        warps = _Warps(*numbered(self.contents, self.at, columns))
        for first in range(0, len(self.begins) - 1, self.warps_per_block):
            begins = self.begins[first : first + self.warps_per_block + 1].tolist()
            here = (one for one in self.gaps if begins[0] <= one.at < begins[-1])
            gaps = tuple(one._replace(at=one.at - begins[0]) for one in here)
            key = warps.key(begins[0], begins[-1]), tuple(b - begins[0] for b in begins), gaps
            if key not in known:
                block = BlockStream(tuple(map(warps.stream, begins, begins[1:])))
                of_warps = _by_warp(gaps, np.array(begins) - begins[0])
                block = steady(block, of_warps) if gaps else block
                if are_barriers is None:
                    known[key] = written_out(block, of_warps) if gaps else block
                else:
                    known[key] = folded(block, are_barriers, of_warps)
            yield known[key]


class _Warps:
    """The streams of warps, one object for equal ones: from `numbers` of rows of a table."""

    def __init__(self, table: InstructionTable, numbers: Array) -> None:
        self._table, self._numbers = table, numbers
        self._known: dict[bytes, WarpStream] = {}

    def key(self, begin: int, end: int) -> bytes:
        """Return a key, equal for sections with equal instructions."""
        return self._numbers[begin:end].tobytes()

    def stream(self, begin: int, end: int) -> WarpStream:
        """Return the stream of the warp from one place to another."""
        key = self.key(begin, end)
        if key not in self._known:
            self._known[key] = WarpStream(self._table, self._numbers[begin:end].copy())
        return self._known[key]


def _by_warp(gaps: tuple[Gap, ...], begins: Array) -> list[list[Gap]]:
    """Return the gaps of each warp, counted from its begin."""
    found: list[list[Gap]] = [[] for _ in begins[1:]]
    for one in gaps:
        warp = int(np.searchsorted(begins, one.at, side="right")) - 1
        found[warp].append(one._replace(at=one.at - int(begins[warp])))
    return found
