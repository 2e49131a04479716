"""A grid's blocks in boxes, by their coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpusim.launch.grid import Dim3, places_of
from gpusim.typing import Array

Places = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Cells:
    """A partition of a grid into boxes: the coordinates on x, y and z at which they begin."""

    grid: Dim3
    begins: Places

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of boxes along z, y and x."""
        x, y, z = map(len, self.begins)
        return z, y, x

    @property
    def first(self) -> Array:
        """Numbers of the first block of each box, shaped (z, y, x)."""
        return numbers_of(self.begins, self.grid)

    def extents(self, axis: int) -> Array:
        """Return the sizes of the boxes along an axis, in blocks."""
        return np.diff([*self.begins[axis], self.grid[axis]])

    def of(self, blocks: Array) -> tuple[Array, Array, Array]:
        """Return the boxes of blocks, as indices along z, y and x."""
        x, y, z = (
            np.searchsorted(begins, places, side="right") - 1
            for begins, places in zip(self.begins, places_of(blocks, self.grid), strict=True)
        )
        return z, y, x

    def divided(self, more: Sequence[Sequence[int]]) -> Cells:
        """Return a finer partition, with more beginnings on each axis."""
        x, y, z = (tuple(sorted({*a, *b})) for a, b in zip(self.begins, more, strict=True))
        return replace(self, begins=(x, y, z))

    def merged(self, values: Array) -> tuple[Cells, Array]:
        """Return a coarser partition: neighbours with equal values merged, and the values."""
        begins = []
        for axis in range(3):
            along = np.moveaxis(values, 2 - axis, 0)
            is_other = (along[1:] != along[:-1]).any(axis=(1, 2))
            begins_here = np.flatnonzero(np.concatenate([[True], is_other]))
            values = values.take(begins_here, axis=2 - axis)
            begins.append(tuple(self.begins[axis][place] for place in begins_here.tolist()))
        x, y, z = begins
        return replace(self, begins=(x, y, z)), values

    def in_order(self, values: Array, most: int) -> tuple[Array, Array] | None:
        """Return the boxes' values as runs in the order of block numbers: starts and values.

        None for more than `most` runs.
        """
        is_split = [len(self.begins[0]) > 1, max(map(len, self.begins[:2])) > 1]
        split = [axis for axis in (1, 2) if is_split[axis - 1]]
        if values.size * math.prod(self.grid[a] / len(self.begins[a]) for a in split) > most:
            return None
        places: list[Sequence[int]] = list(self.begins)
        for axis in split:
            values = np.repeat(values, self.extents(axis), axis=2 - axis)
            places[axis] = range(self.grid[axis])
        return numbers_of(places, self.grid).ravel(), values.ravel()


def numbers_of(places: Sequence[Sequence[int] | Array], grid: Dim3) -> Array:
    """Return the block numbers of all combinations of coordinates, shaped (z, y, x)."""
    x, y, z = map(np.asarray, places)
    return np.asarray((z[:, None, None] * grid[1] + y[:, None]) * grid[0] + x)


def is_line(grid: Dim3) -> bool:
    """Return whether a grid has blocks along one axis alone."""
    return max(grid) == math.prod(grid)
