"""What the blocks of a batch executed, a few blocks at a time, warp after warp.

NumPy's machine reports steps of many warps, compiled code columns of steps of single ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.launch.events import Accesses, Placement, Steps
from gpusim.prediction.streams.constants import looked_up_lines
from gpusim.prediction.streams.executed import Executed
from gpusim.prediction.streams.kinds_by_pc import KindsByPc
from gpusim.prediction.streams.ordering import ranges, stable_order
from gpusim.prediction.streams.sections import sections_of
from gpusim.prediction.streams.step_columns import TYPES, StepColumns
from gpusim.prediction.streams.touches import Touches, joined

Array = np.ndarray[Any, Any]

MOST_AT_ONCE = 1 << 17  # instructions; above it columns leave the cache


@dataclass(frozen=True)
class Part:
    """Blocks of a batch from position `begun` on: their instructions, and touches of sectors.

    `numbers` are those of the instructions among the recorded ones, of one copy.
    """

    begun: int
    executed: Executed
    numbers: Array
    touches: Touches


def parts(
    before: StepColumns, touches: Touches, compiled: list[Steps], kinds: KindsByPc
) -> Iterator[Part]:
    """Yield the blocks of a batch, from what they did in NumPy's machine and in compiled code.

    Touches are by block, those of compiled code among its steps, which are given up.
    """
    blocks, warps = len(before.placement.blocks), before.placement.warps_per_block
    whole = _Both(before, compiled, kinds) if compiled else _Stepped(before)
    compiled.clear()  # all of it is held by now
    ends, begun = whole.begins[::warps], 0
    while begun < blocks:
        end = int(np.searchsorted(ends, ends[begun] + MOST_AT_ONCE, side="right")) - 1
        end = min(max(end, begun + 1), blocks)
        begins = whole.begins[begun * warps : end * warps + 1]
        yield whole.part(range(begun, end), begins, touches.of_blocks(begun, end))
        begun = end


class _Stepped:
    """What NumPy's machine ran of a batch.

    `begins` are the places where those of a warp begin, warp after warp, and the end.
    """

    def __init__(self, before: StepColumns) -> None:
        self._before = before
        self._order = stable_order(before.rows)
        self._places = np.empty_like(self._order)
        self._places[self._order] = np.arange(len(before))
        counts = np.bincount(before.rows, minlength=before.placement.rows)
        self.begins = np.append(0, np.cumsum(np.tile(counts, before.placement.copies)))

    def part(self, blocks: range, begins: Array, touches: Touches) -> Part:
        """Return some of the blocks; those of a folded batch are copies of the same path."""
        before, length = self._before, len(self._before)
        if before.placement.folded:
            here, copies = self._order, slice(blocks.start, blocks.stop)
            begin = -length * touches.block
        else:
            here, copies = self._order[begins[0] : begins[-1]], slice(1)
            begin = begins[0]
        count = copies.stop - (copies.start or 0)
        executed = Executed(
            before.placement.warps_per_block,
            begins - begins[0],
            np.tile(before.pc[here], count),
            np.tile(before.times[here], count),
            {n: v[copies].take(here, axis=1).reshape(-1) for n, v in before.values.items()},
        )
        places = self._places[touches.place % max(1, length)] - begin
        places[touches.place < 0] = -1
        return Part(blocks.start, executed, np.tile(here, count), replace(touches, place=places))


class _Both:
    """What compiled code ran of a batch, after NumPy's machine; `begins` as there."""

    def __init__(self, before: StepColumns, compiled: Sequence[Steps], kinds: KindsByPc) -> None:
        self._before, first, self._kinds = before, before.values, kinds
        self._pc = np.concatenate([before.pc, *(one.pc for one in compiled)])
        self._lanes = np.concatenate([first["lanes"][0], *(one.lanes for one in compiled)])
        self._is_on = np.concatenate([first["is_on"][0], *(one.is_on for one in compiled)])
        self._is_taken = np.concatenate([first["is_taken"][0], *(one.is_taken for one in compiled)])
        later, times = sections_of(compiled, before.placement, before.clock)
        self._times = np.concatenate([before.times, times])
        self._sections = later.after(before.rows)
        self._set_places(before.placement)
        self._set_accesses(compiled)

    def _set_places(self, placement: Placement) -> None:
        sections = self._sections
        self._order = stable_order(sections.rows)
        self._rows = sections.rows[self._order]
        ends = np.cumsum(sections.counts[self._order])
        self._places = np.empty_like(ends)  # of the first step of each section
        self._places[self._order] = ends - sections.counts[self._order]
        warps = np.searchsorted(self._rows, np.arange(placement.rows + 1))
        self.begins = np.append(0, ends)[warps]

    def _set_accesses(self, compiled: Sequence[Steps]) -> None:
        begins = np.cumsum([len(self._before), *(len(one.pc) for one in compiled)])
        shifted = [
            one.accesses._replace(at=one.accesses.at + begin)
            for one, begin in zip(compiled, begins.tolist(), strict=False)
        ]
        self._accesses = Accesses(*map(np.concatenate, zip(*shifted, strict=True)))
        firsts = np.append(self._sections.first, len(self._pc))
        self._first_accesses = np.searchsorted(self._accesses.at, firsts)
        self._first_runs = np.cumsum(self._accesses.runs) - self._accesses.runs

    def part(self, blocks: range, begins: Array, touches: Touches) -> Part:
        """Return some of the blocks, with what they touched before compiled code ran them."""
        warps, kinds = self._before.placement.warps_per_block, self._kinds
        low, high = np.searchsorted(self._rows, (blocks.start * warps, blocks.stop * warps))
        mine = self._order[low:high]
        here = self._sections.at(mine).steps
        later = np.sort(mine[mine >= len(self._before)])
        accesses = self._accesses_of(later, int(begins[0]))
        values = self._values(here)
        pc = self._pc[here]
        _set_accesses(values, accesses, pc, kinds)
        executed = Executed(warps, begins - begins[0], pc, self._times[here], values)
        before = replace(touches, place=self._places[touches.place] - begins[0])
        both = joined([before, _touches(accesses, executed, kinds)])
        return Part(blocks.start, executed, here, both)

    def _values(self, here: Array) -> dict[str, Array]:
        """Return the columns of some steps, those of accesses in compiled code left empty."""
        values = {name: np.zeros(len(here), dtype=dtype) for name, dtype in TYPES.items()}
        values["lowest"][:] = values["constant"][:] = -1
        before = np.flatnonzero(here < len(self._before))
        for name in ("cost", "lines", "wavefronts", "lowest", "gaps", "constant"):
            values[name][before] = self._before.values[name][0][here[before]]
        values["lanes"] = self._lanes[here]
        values["is_on"] = self._is_on[here]
        values["is_taken"] = self._is_taken[here]
        return values

    def _accesses_of(self, sections: Array, begin: int) -> Accesses:
        """Return the accesses of some sections, with steps by their place from `begin` on."""
        first = self._first_accesses[sections]
        counts = self._first_accesses[sections + 1] - first
        which = ranges(first, counts)
        moved = self._places[sections] - self._sections.first[sections] - begin
        at = self._accesses.at[which] + np.repeat(moved, counts)
        runs = ranges(self._first_runs[which], self._accesses.runs[which])
        columns = [column[which] for column in self._accesses[1:8]]
        return Accesses(at, *columns, *(column[runs] for column in self._accesses[8:]))


def _set_accesses(
    values: dict[str, Array], accesses: Accesses, pcs: Array, kinds: KindsByPc
) -> None:
    """Set the columns of accesses."""
    at, pc = accesses.at, pcs[accesses.at]
    passes = np.where(kinds.add_up[pc] & accesses.is_one, 1, accesses.passes)
    is_within_l1 = kinds.are_local_without_rows[pc]
    values["cost"][at] = np.where(is_within_l1, 0, passes)
    values["lines"][at] = np.where(is_within_l1, 0, accesses.lines)
    values["wavefronts"][at] = accesses.wavefronts
    is_load = kinds.are_loads[pc]
    values["lowest"][at] = np.where(is_load, accesses.lowest, -1)
    values["gaps"][at] = np.where(is_load, accesses.gaps, 0)
    looked_up = kinds.are_looked_up[pc]
    values["constant"][at[looked_up]] = looked_up_lines(
        kinds.instructions, pc[looked_up], accesses.lowest[looked_up]
    )


def _touches(accesses: Accesses, executed: Executed, kinds: KindsByPc) -> Touches:
    """Return the sectors that accesses touch: of local memory, some of them twice."""
    owner = np.repeat(accesses.at, accesses.runs)
    pc = executed.pc[owner]
    wanted = np.flatnonzero(kinds.touch[pc])
    owner, pc = owner[wanted], pc[wanted]
    warp = executed.rows[owner] % executed.warps_per_block
    shift = np.where(kinds.are_local[pc], kinds.local.begin_of(warp), 0)
    begin = (accesses.first[wanted] + shift) // SECTOR_BYTES
    counts = (accesses.last[wanted] + shift) // SECTOR_BYTES - begin + 1
    place = np.repeat(owner, counts)
    block = executed.rows[place] // executed.warps_per_block
    is_store = np.repeat(kinds.are_stores[pc], counts)
    return Touches(block, place, place, ranges(begin, counts), is_store)
