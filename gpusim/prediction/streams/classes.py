"""Blocks that do the same: a grid's classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.prediction.streams.cells import Cells
from gpusim.prediction.streams.stream import BlockStream
from gpusim.prediction.streams.stretches import Stretches

Array = np.ndarray[Any, Any]

MOST_PIECES = 1 << 20  # of one class in the order of block numbers


@dataclass(frozen=True)
class BlockClass:
    """Blocks that do the same: their stream, and ranges (first, last) of block numbers.

    `name` tells them apart in reports.
    """

    name: str
    stream: BlockStream
    ranges: tuple[tuple[int, int], ...]

    @cached_property
    def blocks(self) -> int:
        """Number of blocks in the class."""
        return sum(last - first + 1 for first, last in self.ranges)


@dataclass(frozen=True)
class Classes:
    """A grid's classes. `probed` blocks were run; the others lie between some that are alike.

    `is_sampled` where too many blocks differ to tell them all apart: each of some then stands for
    those around it, and the instructions of all are known to `sampling_error`, a fraction (one
    standard error), None where that is not known. Of blocks that have to be run among others it is
    known what they have `touched`.
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
        """Return the same but for the grid's last block, which is a class of its own."""
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
        """Sectors that blocks touch first by reading them, each block's own counted."""
        return sum(one.blocks * one.stream.read_sectors for one in self.classes)

    @cached_property
    def written_sectors(self) -> int:
        """Sectors that blocks store to, each block's own counted."""
        return sum(one.blocks * one.stream.written_sectors for one in self.classes)


def classes_from(
    cells: Cells, kinds: Array, streams: Sequence[BlockStream]
) -> tuple[BlockClass, ...] | None:
    """Return the classes of a grid of which all blocks of a cell do the same.

    `kinds` says for each cell which of the streams that is. None where the classes are in too many
    pieces.
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
    """Return the classes of so many blocks, each of which counts as the nearest that was run.

    `streams` are those of the blocks that were, by their numbers.
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
