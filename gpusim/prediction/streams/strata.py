"""A stratified sample: a grid's blocks in cells of equal size, with one chosen block in each.

Choices are irregular within cells, for kernels with periodic work over block numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim.launch.grid import Dim3
from gpusim.prediction.arithmetic.quasirandom import multipliers
from gpusim.prediction.streams.cells import Cells
from gpusim.typing import Array

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
