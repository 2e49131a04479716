"""What the blocks of a batch executed, a few blocks at a time, warp after warp.

NumPy's machine reports steps of many warps, compiled code columns of steps of single ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.launch.events import Accesses, Omitted, Placement, Steps
from gpusim.prediction.streams.constants import looked_up_lines
from gpusim.prediction.streams.executed import Executed
from gpusim.prediction.streams.folding import Gap
from gpusim.prediction.streams.instruction_table import columns_of_plain, plain_contents
from gpusim.prediction.streams.kinds_by_pc import KindsByPc
from gpusim.prediction.streams.ordering import ranges, stable_order
from gpusim.prediction.streams.sections import Ran, begun_sections
from gpusim.prediction.streams.step_columns import TYPES, StepColumns
from gpusim.prediction.streams.touches import Touches, joined
from gpusim.typing import Array

MOST_AT_ONCE = 1 << 17  # instructions; above it columns leave the cache


@dataclass(frozen=True)
class Part:
    """Some blocks of a batch: their instructions, and touches of sectors."""

    executed: Executed
    touches: Touches


class Compiled(NamedTuple):
    """Some steps of compiled code, one warp's after the other's: contents, sections, accesses."""

    contents: Array
    ran: Ran
    accesses: Accesses
    omitted: Omitted | None

    @classmethod
    def of(cls, steps: Steps) -> Compiled:
        """Return some steps, without columns that a section has in common."""
        contents = plain_contents(steps.pc, steps.lanes, steps.is_on, steps.is_taken)
        return cls(contents, Ran.of(steps), steps.accesses, steps.omitted)


def parts(ran: Stepped | Sectioned) -> Iterator[Part]:
    """Yield the blocks of a batch, some at a time."""
    blocks, warps = len(ran.placement.blocks), ran.placement.warps_per_block
    ends, begun = ran.begins[::warps], 0
    while begun < blocks:
        end = int(np.searchsorted(ends, ends[begun] + MOST_AT_ONCE, side="right")) - 1
        end = min(max(end, begun + 1), blocks)
        begins = ran.begins[begun * warps : end * warps + 1]
        yield ran.part(range(begun, end), begins)
        begun = end


class Stepped:
    """The steps of a batch in NumPy's machine, with touches by block.

    `begins` are the places where those of a warp begin, warp after warp, and the end.
    """

    def __init__(self, before: StepColumns, touches: Touches) -> None:
        self.placement = before.placement
        self._before, self._touches = before, touches
        self._order = stable_order(before.rows)
        is_access = np.zeros(len(before), dtype=bool)
        is_access[before.accesses] = True
        self._at = np.flatnonzero(is_access[self._order])
        self._accesses = np.searchsorted(before.accesses, self._order[self._at])
        self._numbers = np.empty_like(self._accesses)  # of accesses in the order of warps
        self._numbers[self._accesses] = np.arange(len(self._accesses))
        counts = np.bincount(before.rows, minlength=before.placement.rows)
        self.begins = np.append(0, np.cumsum(np.tile(counts, before.placement.copies)))

    def part(self, blocks: range, begins: Array) -> Part:
        """Return some of the blocks; those of a folded batch are copies of the same path."""
        before, count = self._before, len(self._accesses)
        touches = self._touches.of_blocks(blocks.start, blocks.stop)
        if before.placement.folded:
            here, copies = self._order, slice(blocks.start, blocks.stop)
            every = np.arange(len(blocks))[:, None]
            at = (self._at + every * len(before)).reshape(-1)
            accesses, moved = self._accesses, count * touches.block
        else:
            here, copies = self._order[begins[0] : begins[-1]], slice(1)
            low, high = np.searchsorted(self._at, (begins[0], begins[-1]))
            at = self._at[low:high] - begins[0]
            accesses, moved = self._accesses[low:high], -low
        times = copies.stop - (copies.start or 0)
        executed = Executed(
            before.placement.warps_per_block,
            begins - begins[0],
            before.contents[copies].take(here, axis=1).reshape(-1),
            at,
            np.tile(before.times[accesses], times),
            {n: v[copies].take(accesses, axis=1).reshape(-1) for n, v in before.values.items()},
        )
        places = self._numbers[touches.place % max(1, count)] + moved
        return Part(executed, replace(touches, place=places))


class Sectioned:
    """The sections of a batch in compiled code; `begins` as of `Stepped`.

    `compiled` is given up.
    """

    def __init__(self, placement: Placement, compiled: list[Compiled], kinds: KindsByPc) -> None:
        self.placement, self._kinds = placement, kinds
        self._sections, self._base = begun_sections([one.ran for one in compiled], placement)
        self._set_places(placement)
        self._set_accesses(compiled)
        self._set_further(compiled)
        self._set_contents(compiled)

    def _set_contents(self, compiled: list[Compiled]) -> None:
        """Put the contents of all instructions in the order of warps, some at a time."""
        self._contents = np.empty(int(self._sections.counts.sum()), dtype=np.uint64)
        done = 0
        for one in _given_up(compiled):
            begins = self._places[done : done + len(one.ran.sections)]
            counts = one.ran.sections.counts
            done += len(begins)
            is_whole = (begins[1:] == begins[:-1] + counts[:-1]).all()  # warps of blocks, in order
            if len(begins) and is_whole:
                self._contents[begins[0] :][: len(one.contents)] = one.contents
            else:
                self._contents[ranges(begins, counts)] = one.contents

    def _set_further(self, compiled: Sequence[Compiled]) -> None:
        """Keep the gaps of omitted iterations by section, with their stretches."""
        self._further: dict[int, tuple[Gap, tuple[Array, ...]]] = {}
        done = 0
        for one in compiled:
            if one.omitted is not None:
                section = done + int(np.flatnonzero(one.ran.sections.gaps)[0])
                touches = further(one.accesses, one.omitted)
                pc = columns_of_plain(one.contents[touches[1]])["pc"]
                gap = Gap(int(self._places[section]), *one.omitted[1:4])
                self._further[section] = gap, (touches[0], pc, *touches[2:4])
            done += len(one.ran.sections)

    def _set_places(self, placement: Placement) -> None:
        sections = self._sections
        self._order = stable_order(sections.rows)
        self._rows = sections.rows[self._order]
        ends = np.cumsum(sections.counts[self._order])
        self._places = np.empty_like(ends)  # of the first step of each section
        self._places[self._order] = ends - sections.counts[self._order]
        warps = np.searchsorted(self._rows, np.arange(placement.rows + 1))
        self.begins = np.append(0, ends)[warps]

    def _set_accesses(self, compiled: Sequence[Compiled]) -> None:
        counts = (len(one.contents) for one in compiled)
        begins = itertools.accumulate(counts, initial=0)
        shifted = [
            one.accesses._replace(at=one.accesses.at + begin)
            for one, begin in zip(compiled, begins, strict=False)
        ]
        self._accesses = Accesses(*map(np.concatenate, zip(*shifted, strict=True)))
        firsts = np.append(self._sections.first, self._sections.counts.sum())
        self._first_accesses = np.searchsorted(self._accesses.at, firsts)
        self._first_runs = np.cumsum(self._accesses.runs) - self._accesses.runs

    def part(self, blocks: range, begins: Array) -> Part:
        """Return some of the blocks."""
        warps = self.placement.warps_per_block
        low, high = np.searchsorted(self._rows, (blocks.start * warps, blocks.stop * warps))
        mine = self._order[low:high]
        contents = self._contents[begins[0] : begins[-1]]
        accesses, times = self._accesses_of(np.sort(mine), int(begins[0]))
        in_order = _InOrder.of(accesses.at)
        pc = columns_of_plain(contents[accesses.at])["pc"]
        found = _values(accesses, pc, self._kinds).items()
        values = {name: in_order(column) for name, column in found}
        at, times = in_order(accesses.at), in_order(times)
        executed = Executed(warps, begins - begins[0], contents, at, times, values)
        touches = _touches(accesses, pc, in_order.numbers, executed, self._kinds)
        omitted = []
        for section in np.sort(mine[self._sections.gaps[mine] > 0]).tolist():
            gap, touched = self._further[section]
            executed.gaps.append(gap._replace(at=gap.at - int(begins[0])))
            warp = int(self._sections.rows[section]) - blocks.start * warps
            time = int(self._base[section])
            omitted.append(_omitted_touches(warp, time, touched, executed, self._kinds))
        return Part(executed, joined([touches, *omitted]))

    def _accesses_of(self, sections: Array, begin: int) -> tuple[Accesses, Array]:
        """Return the accesses of some sections, with steps by their place from `begin` on.

        With them comes the time of each.
        """
        first = self._first_accesses[sections]
        counts = self._first_accesses[sections + 1] - first
        which = _ranges(first, counts)
        at = self._accesses.at[which] - np.repeat(self._sections.first[sections], counts)
        runs = _ranges(self._first_runs[which], self._accesses.runs[which])
        columns = [column[which] for column in self._accesses[1:8]]
        places = at + np.repeat(self._places[sections] - begin, counts)
        times = at + np.repeat(self._base[sections], counts)
        return Accesses(places, *columns, *(column[runs] for column in self._accesses[8:])), times


def _ranges(first: Array, counts: Array) -> Array | slice:
    """Return the numbers of ranges: a slice where each begins at the end of the one before."""
    if len(first) and (first[1:] == first[:-1] + counts[:-1]).all():
        return slice(int(first[0]), int(first[-1] + counts[-1]))
    return ranges(first, counts)


def _given_up(compiled: list[Compiled]) -> Iterator[Compiled]:
    compiled.reverse()
    while compiled:
        yield compiled.pop()


class _InOrder:
    """Puts columns of accesses in the order of their places; `numbers` has each one's in it."""

    def __init__(self, order: Array | None, count: int) -> None:
        self._order = order
        self.numbers = np.arange(count)
        if order is not None:
            self.numbers[order] = np.arange(count)

    @classmethod
    def of(cls, places: Array) -> _InOrder:
        """Return the function that orders columns by these places; most often they are in order."""
        is_so = bool((places[1:] > places[:-1]).all())
        return cls(None if is_so else stable_order(places), len(places))

    def __call__(self, column: Array) -> Array:
        """Return a column in order."""
        return column if self._order is None else column[self._order]


def _values(accesses: Accesses, pc: Array, kinds: KindsByPc) -> dict[str, Array]:
    """Return the columns of accesses, by the instruction of each."""
    passes = np.where(kinds.add_up[pc] & accesses.is_one, 1, accesses.passes)
    is_within_l1 = kinds.are_local_without_rows[pc]
    is_load = kinds.are_loads[pc]
    looked_up = np.flatnonzero(kinds.are_looked_up[pc])
    constant = np.full(len(pc), -1, dtype=TYPES["constant"])
    constant[looked_up] = looked_up_lines(
        kinds.instructions, pc[looked_up], accesses.lowest[looked_up]
    )
    return {
        "cost": np.where(is_within_l1, 0, passes),
        "lines": np.where(is_within_l1, 0, accesses.lines),
        "wavefronts": accesses.wavefronts,
        "lowest": np.where(is_load, accesses.lowest, -1),
        "gaps": np.where(is_load, accesses.gaps, 0),
        "constant": constant,
    }


def _touches(
    accesses: Accesses, pcs: Array, numbers: Array, executed: Executed, kinds: KindsByPc
) -> Touches:
    """Return the sectors that accesses touch: of local memory, some of them twice."""
    first, last, counts = accesses.first, accesses.last, accesses.runs
    wanted = kinds.touch[pcs]
    if not wanted.all():
        some = np.repeat(wanted, counts)
        first, last = first[some], last[some]
        pcs, numbers, counts = pcs[wanted], numbers[wanted], counts[wanted]
    warp = executed.rows[numbers]
    if kinds.are_local[pcs].any():
        begin_of = kinds.local.begin_of(warp % executed.warps_per_block)
        shift = np.repeat(np.where(kinds.are_local[pcs], begin_of, 0), counts)
        first, last = first + shift, last + shift
    sector, lengths = _sectors(first, last)
    if (lengths != 1).any():
        owner = np.repeat(np.arange(len(counts)), counts)
        counts = np.bincount(owner, lengths, minlength=len(counts)).astype(np.int64)
    block = np.repeat(warp // executed.warps_per_block, counts)
    place = np.repeat(numbers, counts)
    return Touches(block, place, place, sector, np.repeat(kinds.are_stores[pcs], counts))


def _sectors(first: Array, last: Array) -> tuple[Array, Array]:
    """Return the sectors of stretches, one after the other, and the number of each one's."""
    sector = first // SECTOR_BYTES
    lengths = last // SECTOR_BYTES - sector + 1
    return (ranges(sector, lengths) if (lengths != 1).any() else sector), lengths


def _omitted_touches(
    row: int, time: int, touches: tuple[Array, ...], executed: Executed, kinds: KindsByPc
) -> Touches:
    """Return touches of sectors by omitted iterations of a warp before a time, without a place."""
    wanted = np.flatnonzero(kinds.touch[touches[1]])
    ahead, pc, first, last = (column[wanted] for column in touches)
    block, warp = divmod(row, executed.warps_per_block)
    if kinds.are_local[pc].any():
        shift = np.where(kinds.are_local[pc], kinds.local.begin_of(np.array([warp])), 0)
        first, last = first + shift, last + shift
    sector, lengths = _sectors(first, last)
    step = np.repeat(time + ahead, lengths)
    nowhere = np.full(len(step), -1)
    is_store = np.repeat(kinds.are_stores[pc], lengths)
    return Touches(np.full(len(step), block), step, nowhere, sector, is_store)


def further(accesses: Accesses, omitted: Omitted) -> tuple[Array, Array, Array, Array, Array]:
    """Return the stretches of omitted iterations, one after the other.

    The columns are the distance to the next recorded step, a negative number; the recorded step
    with the same instruction; the addresses of the first and last element; and the lanes.
    """
    at, period, times, _, strides = omitted
    low, high = np.searchsorted(accesses.at, (at - period, at))
    ends = np.append(0, np.cumsum(accesses.runs))
    mine = slice(int(ends[low]), int(ends[high]))
    step = np.repeat(accesses.at[low:high], accesses.runs[low:high])
    number = np.arange(1, times + 1)[:, None]
    ahead = step - at - period * (times - number)
    moved = strides * number
    first, last = ((column[mine] + moved).reshape(-1) for column in accesses[8:10])
    told, lanes = (np.tile(column, times) for column in (step, accesses.lanes[mine]))
    return ahead.reshape(-1), told, first, last, lanes
