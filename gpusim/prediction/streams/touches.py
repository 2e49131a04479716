"""Which sectors the blocks of a batch touch, when for the first time, and how many in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.streams.local_rows import BEYOND

Array = np.ndarray[Any, Any]

FAR = 1 << 40  # further apart than sectors of one array are


@dataclass(frozen=True)
class Touches:
    """Accesses of sectors in order: by which block of a batch, in which step, at which place.

    A place is one warp's run of an instruction, numbered through all steps and blocks. What was
    skipped has neither: its step and place are -1.
    """

    block: Array
    step: Array
    place: Array
    sector: Array

    def at(self, which: Array) -> Touches:
        """Return some of them."""
        return Touches(self.block[which], self.step[which], self.place[which], self.sector[which])

    def of_blocks(self, count: int) -> list[Touches]:
        """Return each block's own."""
        order = np.argsort(self.block, kind="stable")
        ends = np.searchsorted(self.block[order], np.arange(1, count))
        return [self.at(mine) for mine in np.split(order, ends)]

    def skipped(self, times: Array, strides: Mapping[int, int]) -> Touches:
        """Return these moved on by strides, as often as the block says; none where it is never."""
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
    """Return, per place, how many sectors no earlier access of the block touched.

    Where several warps touch a sector first in one step, it is counted for one of them; the
    second array says for which of the others. The third says in which step the last of a place's
    sectors was touched first, -1 where that was skipped.
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
    """A block's skip: what it touched in the `steps` before, moved on by strides, `times` times."""

    steps: Array
    times: int
    strides: Mapping[int, int]


def sectors_touched(touches: Touches, skips: Sequence[Skipped]) -> int | None:
    """Return how many sectors a block touches, in what it ran and in what was skipped.

    None where that is not known: loops move through one array by different strides.
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
    """Return by how many sectors each moves on, which the array that it lies in decides."""
    if not strides:
        return np.zeros_like(sectors)
    arrays = np.array(sorted(strides), dtype=np.int64)
    steps = np.array([strides[array] // SECTOR_BYTES for array in arrays.tolist()])
    begin = sectors * SECTOR_BYTES
    found = steps[np.searchsorted(arrays, begin, side="right") - 1]
    return np.where(begin < BEYOND, found, 0)


def _reached(ran: Array, step: int, runs: Sequence[tuple[Array, int]]) -> int:
    """Return how many sectors beside those in `ran` are reached by some that move on.

    Each run is sectors that make so many steps. Sectors a step apart are neighbours on a line:
    what is reached are stretches of lines, and it is counted what these cover together.
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
    """Return places of sectors such that those `size` apart, and they alone, are neighbours."""
    place: Array = sectors % size * FAR + sectors // size
    return place
