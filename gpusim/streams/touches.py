"""Which sectors the blocks of a batch touch, when for the first time, and how many in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.memory import SECTOR_BYTES

Array = np.ndarray[Any, Any]

FAR = 1 << 40  # further apart than sectors of one array are


@dataclass(frozen=True)
class Touches:
    """Accesses of sectors in order: by which block of a batch, in which step, at which place.

    A place is one warp's run of an instruction, numbered through all steps and blocks.
    """

    block: Array
    step: Array
    place: Array
    sector: Array

    def of_blocks(self, count: int) -> list[Touches]:
        """Return each block's own."""
        order = np.argsort(self.block, kind="stable")
        ends = np.searchsorted(self.block[order], np.arange(1, count))
        return [
            Touches(self.block[mine], self.step[mine], self.place[mine], self.sector[mine])
            for mine in np.split(order, ends)
        ]


def first_touches(touches: Touches, places: int) -> tuple[Array, Array]:
    """Return, per place, how many sectors no earlier access of the block touched.

    Where several warps touch a sector first in one step, it is counted for one of them; the
    second array says for which of the others.
    """
    joins = np.zeros(places, dtype=bool)
    _, first, same = np.unique(
        touches.block * FAR + touches.sector, return_index=True, return_inverse=True
    )
    fresh = np.bincount(touches.place[first], minlength=places)
    joins[touches.place[touches.step[first][same] == touches.step]] = True
    return fresh, joins & (fresh == 0)


@dataclass(frozen=True)
class LeftOut:
    """A block's leap: what it touched in the `steps` before, moved on by strides, `times` times."""

    steps: Array
    times: int
    strides: Mapping[int, int]


def sectors_touched(touches: Touches, leaps: Sequence[LeftOut]) -> int | None:
    """Return how many sectors a block touches, in what it ran and in what was left out.

    None where that is not known: loops move through one array by different strides.
    """
    ran = np.unique(touches.sector)
    strides: dict[int, int] = {}
    moved: dict[int, list[tuple[Array, int]]] = {}
    for leap in leaps:
        sectors = np.unique(touches.sector[np.isin(touches.step, leap.steps)])
        arrays = np.array(sorted(leap.strides), dtype=np.int64)
        of = np.searchsorted(arrays, sectors * SECTOR_BYTES, side="right") - 1
        for number, array in enumerate(arrays.tolist()):
            stride = leap.strides[array]
            if strides.setdefault(array, stride) != stride:
                return None
            if stride:
                run = sectors[of == number], leap.times
                moved.setdefault(stride // SECTOR_BYTES, []).append(run)
    return len(ran) + sum(_reached(ran, step, runs) for step, runs in moved.items())


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
