"""A grid's blocks in boxes, by their coordinates, and a stratified sample of them.

The sample has one block of each cell, irregularly chosen for kernels with periodic work over block
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpusim.launch.grid import Dim3, places_of
from gpusim.prediction.arithmetic.quasirandom import multipliers
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


MOST_ROWS = 1 << 14  # rows of a grid divided along all axes; grids with more are taken as one row
EVENLY = multipliers(3)  # quasi-random position in the cell, along each axis


@dataclass(frozen=True)
class Strata:
    """Cells of a grid, and the numbers of their chosen blocks, of the same shape."""

    cells: Cells
    chosen: Array

    def __len__(self) -> int:
        return self.chosen.size

    @property
    def blocks(self) -> int:
        """Number of blocks in all cells."""
        return math.prod(self.cells.grid)

    @property
    def are_whole(self) -> bool:
        """Whether every block is chosen."""
        return len(self) == self.blocks

    def halved(self) -> Strata:
        """Return twice as many cells, divided along the longest axis; choices are kept."""
        longest = max(range(3), key=lambda axis: int(self.cells.extents(axis).max()))
        extents = self.cells.extents(longest)
        more: list[list[int]] = [[], [], []]
        begins = np.array(self.cells.begins[longest])
        more[longest] = (begins + extents // 2).tolist()
        return _chosen(self.cells.divided(more), self.chosen)

    def standard_error(self, values: Array) -> float:
        """Return the relative standard error of a sum over all blocks.

        `values` are those of the chosen blocks, in their shape. The variance within a cell is
        estimated from second differences between neighbouring cells, as in a systematic sample
        (K. M. Wolter, "Introduction to Variance Estimation", 2007, 8.2).
        """
        mean = float(values.mean())
        lines = [axis for axis, size in enumerate(values.shape) if size > 2]
        if self.are_whole or not mean or not lines:
            return 0.0
        apart = np.concatenate([np.diff(values, 2, axis).ravel() for axis in lines])
        left = 1 - len(self) / self.blocks
        return math.sqrt(float((apart**2).mean()) / 6 / len(self) * left) / mean


def strata(grid: Dim3) -> Strata:
    """Return a grid in up to six cells."""
    if grid[1] * grid[2] > MOST_ROWS:
        grid = math.prod(grid), 1, 1
    longest = grid.index(max(grid))
    thirds = [
        [extent // 3, extent * 2 // 3] if a == longest else [] for a, extent in enumerate(grid)
    ]
    cells = Cells(grid, ((0,), (0,), (0,))).divided(thirds)
    return _chosen(cells, np.zeros(0, dtype=np.int64)).halved()


def _chosen(cells: Cells, known: Array) -> Strata:
    """Choose blocks of cells: the known ones, and a quasi-random one in each other cell."""
    number = np.arange(1, math.prod(cells.shape) + 1).reshape(cells.shape)
    width, height, _ = cells.grid
    chosen = cells.first
    for axis, apart in enumerate((1, width, width * height)):
        extents = cells.extents(axis).reshape([-1 if a == 2 - axis else 1 for a in range(3)])
        chosen = chosen + apart * (extents * (number * EVENLY[axis] % 1.0)).astype(np.int64)
    chosen[cells.of(known.ravel())] = known.ravel()
    return Strata(cells, chosen)
