"""Classes of a grid: blocks with equal streams."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from gpusim.prediction.streams.cells import Cells
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

MOST_PIECES = 1 << 20  # ranges of block numbers of one class


@dataclass(frozen=True)
class BlockClass:
    """Blocks with equal streams, as ranges (first, last) of block numbers.

    `name` identifies the class in reports.
    """

    name: str
    stream: BlockStream
    ranges: tuple[tuple[int, int], ...]

    @cached_property
    def blocks(self) -> int:
        """Number of blocks in the class."""
        return sum(last - first + 1 for first, last in self.ranges)


@dataclass(frozen=True, eq=False)
class Classes:
    """A grid's classes, from `probed` executed blocks; the others lie between equal ones.

    It `is_sampled` if too many blocks differ: each executed block then represents
    its neighbourhood, and `sampling_error` is the relative standard error of the instruction count,
    None if unknown. `touched` holds the stretches of executed blocks, if blocks depend on others.
    """

    classes: tuple[BlockClass, ...]
    probed: int
    is_sampled: bool
    sampling_error: float | None = 0.0
    touched: Mapping[int, Stretches] | None = None

    def of(self, block: int) -> BlockStream:
        """Return the stream of a block."""
        return next(
            one.stream
            for one in self.classes
            if any(first <= block <= last for first, last in one.ranges)
        )

    def with_last(self, stream: BlockStream) -> Classes:
        """Return these classes, with the grid's last block as a class of its own."""
        last = max(end for one in self.classes for _, end in one.ranges)
        made = []
        for one in self.classes:
            others = tuple((a, min(b, last - 1)) for a, b in one.ranges if a < last)
            if others:
                made.append(replace(one, ranges=others))
        own = BlockClass(f"class {len(self.classes)}", stream, ((last, last),))
        return replace(self, classes=(*made, own))

    @cached_property
    def read_sectors(self) -> int:
        """Sectors first touched by a read, summed over blocks."""
        return sum(one.blocks * one.stream.read_sectors for one in self.classes)

    @cached_property
    def written_sectors(self) -> int:
        """Sectors stored to, summed over blocks."""
        return sum(one.blocks * one.stream.written_sectors for one in self.classes)


def classes_from(
    cells: Cells, kinds: Array, streams: Sequence[BlockStream]
) -> tuple[BlockClass, ...] | None:
    """Return the classes of a grid whose cells are uniform.

    `kinds` holds the index into `streams` of each cell. None for more than MOST_PIECES ranges.
    """
    found = Cells.in_order(*cells.merged(kinds), MOST_PIECES)
    if found is None:
        return None
    starts, kinds = found
    begins = np.flatnonzero(np.diff(kinds, prepend=-1))
    ends = np.append(starts[begins[1:]], math.prod(cells.grid)) - 1
    pieces = zip(kinds[begins].tolist(), starts[begins].tolist(), ends.tolist(), strict=True)
    ranges: dict[int, list[tuple[int, int]]] = {}
    for kind, first, last in pieces:
        ranges.setdefault(kind, []).append((first, last))
    return tuple(
        BlockClass(f"class {number}", streams[kind], tuple(mine))
        for number, (kind, mine) in enumerate(ranges.items())
    )


def nearest(streams: Mapping[int, BlockStream], blocks: int) -> Classes:
    """Return the classes of `blocks` blocks, each represented by the nearest executed one.

    `streams` are those of the executed blocks, by block number.
    """
    known = sorted(streams)
    ends = [(a + b) // 2 for a, b in pairwise(known)]
    ranges: dict[bytes, list[tuple[int, int]]] = {}
    by_key: dict[bytes, BlockStream] = {}
    for block, first, last in zip(
        known, [0, *(end + 1 for end in ends)], [*ends, blocks - 1], strict=True
    ):
        by_key.setdefault(streams[block].key, streams[block])
        ranges.setdefault(streams[block].key, []).append((first, last))
    made = (
        BlockClass(f"class {number}", by_key[key], tuple(mine))
        for number, (key, mine) in enumerate(ranges.items())
    )
    is_sampled = len(known) < blocks
    error = None if is_sampled else 0.0
    return Classes(tuple(made), len(known), is_sampled, sampling_error=error)
