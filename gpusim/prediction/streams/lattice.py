"""Where on a grid's axes blocks begin to do something else.

Edges of a grid are products of ranges, one for each axis. Blocks are run where chosen places of all
axes meet; where two neighbours among these differ, places between them are chosen, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.launch.grid import Dim3, places_of
from gpusim.prediction.streams.cells import Cells, is_line

Array = np.ndarray[Any, Any]

# Into so many parts what lies between two places is divided: on a grid of one axis, and on others,
# where each place is run with all of the other axes.
LINE_PARTS, PARTS = 16, 4


def corners(grid: Dim3) -> Cells:
    """Return cells that begin at the first and at the last place of each axis."""
    x, y, z = (tuple(sorted({0, extent - 1})) for extent in grid)
    return Cells(grid, (x, y, z))


def between(cells: Cells, kinds: Array) -> list[list[int]]:
    """Return, for each axis, places within cells whose first blocks and their neighbours' differ.

    `kinds` says what the first block of each cell does: equal numbers where that is the same.
    """
    return [list(_between(cells, axis, np.moveaxis(kinds, 2 - axis, 0))) for axis in range(3)]


def _between(cells: Cells, axis: int, kinds: Array) -> Iterator[int]:
    differ = (kinds[1:] != kinds[:-1]).any(axis=(1, 2)).tolist()
    for (a, b), is_gap in zip(pairwise(cells.begins[axis]), differ, strict=True):
        if is_gap and b - a > 1:
            yield from _spaced(a, b, axis, cells.grid)


def _spaced(first: int, last: int, axis: int, grid: Dim3) -> Sequence[int]:
    if (first, last) == (0, grid[axis] - 1):
        return 1, last - 1  # what differs is mostly an edge
    parts = min(LINE_PARTS if is_line(grid) else PARTS, last - first)
    return [first + (last - first) * k // parts for k in range(1, parts)]


def exceptions(cells: Cells, kinds: Array, others: Array, of_others: Array) -> list[list[int]]:
    """Return, for each axis, the places of blocks that are not as the first of their cells."""
    wrong = others[of_others != kinds[cells.of(others)]]
    return [places.tolist() for places in places_of(wrong, cells.grid)]
