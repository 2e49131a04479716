"""Distinct sectors touched by the blocks of a batch: first touches, and their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gpusim.prediction.arithmetic.grouping import small_numbers
from gpusim.prediction.streams.ordering import stable_order, starts
from gpusim.typing import Array

FAR = 1 << 40  # larger than the distance of sectors in one array
LATE = (1 << 63) - 1  # the rank of no touch
MOST_BETWEEN = 8  # sectors in between for each touch


@dataclass(frozen=True)
class Touches:
    """Touches of sectors in order: block of a batch, step and place, and whether by a store.

    A place is one warp's execution of an instruction, numbered through all steps and blocks.
    Omitted steps have place -1. Columns are of 32 bits, but for sectors: many touches are
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


_NONE = np.zeros(0, dtype=np.int32)
NOTHING = Touches(_NONE, _NONE, _NONE, _NONE.astype(np.int64), _NONE.astype(bool))


def joined(parts: Sequence[Touches]) -> Touches:
    """Return touches one after the other."""
    every = zip(*(part.columns for part in (NOTHING, *parts)), strict=True)
    block, step, place, sector, is_store = map(np.concatenate, every)
    return Touches(block, step, place, sector, is_store)


class FirstTouches(NamedTuple):
    """The first touches of each place.

    `fresh` is the number of sectors untouched by the block before, `written` of those that a store
    is the first to write. A sector first touched by several warps in one step counts for one of
    them; `joins` marks the others. `begun` is the step of the first touch of a place's most recent
    sector, -1 of a place without one.
    """

    fresh: Array
    written: Array
    joins: Array
    begun: Array


def first_touches(touches: Touches, places: int) -> FirstTouches:
    """Return the first touches of sectors by a block, of those in the first step."""
    sectors, step = _Sectors(touches), touches.step
    # The rank of a touch is its number, after its step.
    bits = len(step).bit_length()
    rank = np.arange(len(step), dtype=np.int64) | step.astype(np.int64) << bits
    least = sectors.least(rank)
    first = least[least < LATE] & ((1 << bits) - 1)
    fresh = np.bincount(_told(touches.place[first]), minlength=places)
    stores = np.flatnonzero(touches.is_store)
    first_stores = sectors.least(rank[stores], stores)
    first_stores = first_stores[first_stores < LATE] & ((1 << bits) - 1)
    written = np.bincount(_told(touches.place[first_stores]), minlength=places)
    earliest = least.take(sectors.numbers)
    began = earliest >> bits
    joins = np.zeros(places, dtype=bool)
    joins[_told(touches.place[began == step])] = True
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


def _told(places: Array) -> Array:
    """Return the places of recorded steps."""
    return places[places >= 0]


def _most(place: Array, began: Array, places: int) -> Array:
    """Return the latest value of each place, -1 if it has none; those of a place adjoin."""
    begins = starts(place)
    latest = np.maximum.reduceat(began, begins) if len(begins) else begins
    most = np.full(places + 1, -1)  # the last one: without a place
    most[place[begins]] = latest
    return most[:places]
