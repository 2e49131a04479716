"""Distinct sectors touched by the blocks of a batch: first touches, and their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.arithmetic.grouping import small_numbers
from gpusim.prediction.streams.local_rows import BEYOND
from gpusim.prediction.streams.ordering import stable_order, starts
from gpusim.typing import Array

FAR = 1 << 40  # larger than the distance of sectors in one array
LATE = (1 << 63) - 1  # the rank of no touch
MOST_BETWEEN = 8  # sectors in between for each touch


@dataclass(frozen=True)
class Touches:
    """Touches of sectors in order: block of a batch, step and place, and whether by a store.

    A place is one warp's execution of an instruction, numbered through all steps and blocks.
    Skipped ones have step and place -1. Columns are of 32 bits, but for sectors: many touches are
    held at once.
    """

    block: Array
    step: Array
    place: Array
    sector: Array
    is_store: Array

    def at(self, which: Array | slice) -> Touches:
        """Return some of the rows."""
        return Touches(*(column[which] for column in self.columns))

    @property
    def columns(self) -> tuple[Array, ...]:
        """All columns, in their order."""
        return self.block, self.step, self.place, self.sector, self.is_store

    def by_block(self) -> Touches:
        """Return the same, block by block, those of a block in their order."""
        return self.at(stable_order(self.block))

    def of_blocks(self, begin: int, end: int) -> Touches:
        """Return the touches of some blocks, counted from the first of them; they are by block."""
        low, high = np.searchsorted(self.block, (begin, end))
        some = self.at(slice(low, high))
        return replace(some, block=some.block - begin)

    def skipped(self, times: Array, strides: Mapping[int, int]) -> Touches:
        """Return the touches of the last skipped iteration, `times` strides further by block."""
        some = self.at(times[self.block] > 0)
        moved = some.sector + times[some.block] * _steps(some.sector, strides)
        nowhere = np.full(len(moved), -1, dtype=np.int32)
        return Touches(some.block, nowhere, nowhere, moved, some.is_store)


_NONE = np.zeros(0, dtype=np.int32)
NOTHING = Touches(_NONE, _NONE, _NONE, _NONE.astype(np.int64), _NONE.astype(bool))


def joined(parts: Sequence[Touches]) -> Touches:
    """Return touches one after the other."""
    every = zip(*(part.columns for part in (NOTHING, *parts)), strict=True)
    block, step, place, sector, is_store = map(np.concatenate, every)
    return Touches(block, step, place, sector, is_store)


class FirstTouches(NamedTuple):
    """What is touched first at each place.

    `fresh` is the number of sectors untouched by the block before, `written` of those that a store
    is the first to write. A sector first touched by several warps in one step counts for one of
    them; `joins` marks the others. `begun` is the step of the first touch of a place's most recent
    sector, -1 if that was skipped.
    """

    fresh: Array
    written: Array
    joins: Array
    begun: Array


def first_touches(touches: Touches, places: int, *, by_step: bool) -> FirstTouches:
    """Return the first touches of sectors by a block: of those in the first step, if `by_step`."""
    sectors, step = _Sectors(touches), touches.step
    # The rank of a touch is its number, behind its step.
    bits = len(step).bit_length()
    rank = np.arange(len(step), dtype=np.int64)
    if by_step:
        rank |= step.astype(np.int64) << bits
    least = sectors.least(rank)
    first = least[least < LATE] & ((1 << bits) - 1)
    fresh = np.bincount(_ran(touches.place[first]), minlength=places)
    stores = np.flatnonzero(touches.is_store)
    first_stores = sectors.least(rank[stores], stores)
    first_stores = first_stores[first_stores < LATE] & ((1 << bits) - 1)
    written = np.bincount(_ran(touches.place[first_stores]), minlength=places)
    earliest = least.take(sectors.numbers)
    began = earliest >> bits if by_step else step.take(earliest)
    joins = np.zeros(places, dtype=bool)
    joins[_ran(touches.place[began == step])] = True
    joins &= fresh == 0
    begun = _most(touches.place, began, places)
    return FirstTouches(fresh.astype(np.int32), written.astype(np.int32), joins, begun)


class _Sectors:
    """The `numbers` of sectors by touch: of each block's from its lowest on, or of distinct ones.

    A number for each sector in between takes less time where touches lie close together.
    """

    def __init__(self, touches: Touches) -> None:
        lowest = int(touches.sector.min(initial=FAR))
        span = 1 + int(touches.sector.max(initial=lowest)) - lowest
        self.numbers = touches.block.astype(np.int64) * span
        self.numbers += touches.sector - lowest
        self._count = 1 + int(self.numbers.max(initial=-1))
        if self._count > MOST_BETWEEN * len(self.numbers):
            self.numbers, firsts = small_numbers(self.numbers.view(np.uint64))
            self._count = len(firsts)

    def least(self, ranks: Array, which: Array | None = None) -> Array:
        """Return the least rank of each sector, LATE without a touch, of some touches or all."""
        least = np.full(self._count, LATE)
        np.minimum.at(least, self.numbers if which is None else self.numbers[which], ranks)
        return least


def _ran(places: Array) -> Array:
    """Return the places without those of skipped touches."""
    return places[places >= 0]


def _most(place: Array, began: Array, places: int) -> Array:
    """Return the latest value of each place, -1 if it has none; those of a place adjoin."""
    begins = starts(place)
    latest = np.maximum.reduceat(began, begins) if len(begins) else begins
    most = np.full(places + 1, -1)  # the last one is that of skipped touches
    most[place[begins]] = latest
    return most[:places]


@dataclass(frozen=True)
class Skipped:
    """A block's skip: touches of the `steps` before, repeated `times` times at strides."""

    steps: Array
    times: int
    strides: Mapping[int, int]


def sectors_touched(touches: Touches, skips: Sequence[Skipped]) -> int | None:
    """Return the number of distinct sectors of a block, in executed and skipped iterations.

    None if unknown: loops advance through one array by different strides.
    """
    ran = np.unique(touches.sector[touches.place >= 0])
    strides: dict[int, int] = {}
    runs: dict[int, list[tuple[Array, int]]] = {}
    for skip in skips:
        if any(strides.setdefault(array, s) != s for array, s in skip.strides.items()):
            return None
        sectors = np.unique(touches.sector[np.isin(touches.step, skip.steps)])
        steps = _steps(sectors, skip.strides)
        for step in np.unique(steps[steps != 0]).tolist():
            runs.setdefault(step, []).append((sectors[steps == step], skip.times))
    return len(ran) + sum(_reached(ran, step, found) for step, found in runs.items())


def _steps(sectors: Array, strides: Mapping[int, int]) -> Array:
    """Return the advance of each in sectors, determined by its array."""
    if not strides:
        return np.zeros_like(sectors)
    arrays = np.array(sorted(strides), dtype=np.int64)
    steps = np.array([strides[array] // SECTOR_BYTES for array in arrays.tolist()])
    begin = sectors * SECTOR_BYTES
    found = steps[np.searchsorted(arrays, begin, side="right") - 1]
    return np.where(begin < BEYOND, found, 0)


def _reached(ran: Array, step: int, runs: Sequence[tuple[Array, int]]) -> int:
    """Return the number of sectors beside `ran` that advancing ones reach.

    Each run holds sectors with their number of steps. On a line of sectors one step apart, the
    reached ones are intervals: the size of their union is counted.
    """
    size = abs(step)
    begins = [_on_line(ran, size)]
    ends = [begins[0]]
    for sectors, times in runs:
        place = _on_line(sectors, size)
        begins.append(place + 1 if step > 0 else place - times)
        ends.append(place + times if step > 0 else place - 1)
    begin, end = np.concatenate(begins), np.concatenate(ends)
    order = np.argsort(begin)
    begin, end = begin[order], np.maximum.accumulate(end[order])
    before = np.concatenate([begin[:1] - 1, end[:-1]])
    covered = np.maximum(end - np.maximum(before, begin - 1), 0)
    return int(covered.sum()) - len(ran)


def _on_line(sectors: Array, size: int) -> Array:
    """Return positions of sectors, adjacent exactly for sectors `size` apart."""
    place: Array = sectors % size * FAR + sectors // size
    return place
