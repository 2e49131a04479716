"""Coordinates at which the blocks of a grid begin to differ.

The edges of a grid are products of ranges, one for each axis. Blocks are executed at all
combinations of chosen coordinates; where two neighbours differ, coordinates between them are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from gpusim.launch.grid import Dim3, places_of
from gpusim.prediction.streams.cells import Cells, is_line
from gpusim.typing import Array

# Parts into which the gap between two coordinates is divided: on a grid of one axis, and on others,
# where each coordinate is combined with all of the other axes.
LINE_PARTS, PARTS = 16, 4


def corners(grid: Dim3) -> Cells:
    """Return cells that begin at the first and at the last coordinate of each axis."""
    x, y, z = (tuple(sorted({0, extent - 1})) for extent in grid)
    return Cells(grid, (x, y, z))


def between(cells: Cells, kinds: Array) -> list[list[int]]:
    """Return, for each axis, coordinates between neighbouring first blocks that differ.

    `kinds` numbers the streams of the first block of each cell.
    """
    return [list(_between(cells, axis, np.moveaxis(kinds, 2 - axis, 0))) for axis in range(3)]


def _between(cells: Cells, axis: int, kinds: Array) -> Iterator[int]:
    differ = (kinds[1:] != kinds[:-1]).any(axis=(1, 2)).tolist()
    for (a, b), is_gap in zip(pairwise(cells.begins[axis]), differ, strict=True):
        if is_gap and b - a > 1:
            yield from _spaced(a, b, axis, cells.grid)


def _spaced(first: int, last: int, axis: int, grid: Dim3) -> Sequence[int]:
    if (first, last) == (0, grid[axis] - 1):
        return 1, last - 1  # the difference is mostly an edge
    parts = min(LINE_PARTS if is_line(grid) else PARTS, last - first)
    return [first + (last - first) * k // parts for k in range(1, parts)]


def exceptions(cells: Cells, kinds: Array, others: Array, of_others: Array) -> list[list[int]]:
    """Return, for each axis, coordinates of blocks unlike the first of their cell."""
    wrong = others[of_others != kinds[cells.of(others)]]
    return [places.tolist() for places in places_of(wrong, cells.grid)]
