"""Distinct sectors touched by the blocks of a batch: first touches, and their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.streams.local_rows import BEYOND

Array = np.ndarray[Any, Any]

FAR = 1 << 40  # larger than the distance of sectors in one array


@dataclass(frozen=True)
class Touches:
    """Touches of sectors in order: block of a batch, step and place.

    A place is one warp's execution of an instruction, numbered through all steps and blocks.
    Skipped ones have step and place -1.
    """

    block: Array
    step: Array
    place: Array
    sector: Array

    def at(self, which: Array) -> Touches:
        """Return some of the rows."""
        return Touches(self.block[which], self.step[which], self.place[which], self.sector[which])

    def of_blocks(self, count: int) -> list[Touches]:
        """Return the touches of each block."""
        order = np.argsort(self.block, kind="stable")
        ends = np.searchsorted(self.block[order], np.arange(1, count))
        return [self.at(mine) for mine in np.split(order, ends)]

    def skipped(self, times: Array, strides: Mapping[int, int]) -> Touches:
        """Return the touches of the last skipped iteration, `times` strides further by block."""
        some = self.at(times[self.block] > 0)
        moved = some.sector + times[some.block] * _steps(some.sector, strides)
        nowhere = np.full(len(moved), -1)
        return Touches(some.block, nowhere, nowhere, moved)


NOTHING = Touches(*[np.zeros(0, dtype=np.int64)] * 4)


def joined(parts: Sequence[Touches]) -> Touches:
    """Return touches one after the other."""
    return Touches(
        np.concatenate([NOTHING.block, *(part.block for part in parts)]),
        np.concatenate([NOTHING.step, *(part.step for part in parts)]),
        np.concatenate([NOTHING.place, *(part.place for part in parts)]),
        np.concatenate([NOTHING.sector, *(part.sector for part in parts)]),
    )


def first_touches(touches: Touches, places: int) -> tuple[Array, Array, Array]:
    """Return, per place, the number of sectors untouched by the block before.

    A sector first touched by several warps in one step counts for one of them; the second array
    marks the others. The third is the step of the first touch of a place's most recent sector, -1
    if that was skipped.
    """
    joins = np.zeros(places, dtype=bool)
    begun = np.full(places, -1)
    _, first, same = np.unique(
        touches.block * FAR + touches.sector, return_index=True, return_inverse=True
    )
    place = touches.place[first]
    fresh = np.bincount(place[place >= 0], minlength=places)
    with_first = (touches.step[first][same] == touches.step) & (touches.place >= 0)
    joins[touches.place[with_first]] = True
    ran = touches.place >= 0
    np.maximum.at(begun, touches.place[ran], touches.step[first][same][ran])
    return fresh, joins & (fresh == 0), begun


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
