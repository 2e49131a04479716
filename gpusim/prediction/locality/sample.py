"""A weighted sample of a launch's touches, of each instruction.

It is quasi-random over blocks, stretches and iterations, and deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.launch.grid import Launch
from gpusim.prediction.arithmetic.grouping import groups
from gpusim.prediction.arithmetic.quasirandom import spread
from gpusim.prediction.locality.patterns import Pattern, coordinates
from gpusim.prediction.locality.table import Columns, by_number
from gpusim.prediction.streams.kinds_by_pc import FENCE
from gpusim.typing import Array

SAMPLED = 48  # touches of each instruction
# Touches of each instruction at data-dependent addresses. Of lanes that read a list each, an eighth
# of the touches miss: of n independent ones, 1 / 8 +- 0.33 / sqrt(n).
BY_DATA = 192
DRAWS = 2  # draws for each of these
_NONE = np.zeros(0, dtype=np.int64)
DIMENSIONS = 6  # stretch, block, iteration, sector, and two draws


@dataclass(frozen=True)
class Sample:
    """Sampled touches of sectors; each stands for `weight` touches.

    Each is made by an instruction `pc` of a `block`, at the fraction `place` of the block's
    duration. `lines` is the number of 128-byte lines per sector, `grains` of DRAM grains per
    sector, `run` the contiguous bytes touched with it, and `asked` the fraction of these requested
    by lanes. `draw` and `second_draw`, from 0 to 1, are the random numbers of the touch.
    """

    pc: Array
    kind: Array
    weight: Array
    lines: Array
    grains: Array
    run: Array
    asked: Array
    block: Array
    place: Array
    begin: Array
    draw: Array
    second_draw: Array


def sampled(
    patterns: tuple[Pattern, ...], launch: Launch, grain_bytes: int, each: int = SAMPLED
) -> Sample:
    """Sample `each` touches of an instruction, evenly over blocks, stretches and iterations."""
    rows = Columns([one.stretches for one in patterns])
    order = _by_instruction(rows) if patterns else _NONE
    if not len(order):
        return Sample(*np.zeros((len(fields(Sample)), 0), dtype=np.int64))
    whose = np.repeat(np.arange(len(patterns)), [len(one.stretches) for one in patterns])[order]
    pc, touches = rows["pc"][order], np.concatenate([_touches(one) for one in patterns])[order]
    part = _Parts.of(pc, whose, touches, np.array([one.blocks for one in patterns]), each)
    number, points = part.points()
    along, by_block, by_iteration, by_sector, draw, second_draw = points.T
    mine = whose[part.first[number]]
    row = part.row(number, along)
    found = rows.at(order[row])
    blocks = _numbered(patterns, mine, by_block)
    moved = coordinates(blocks, launch) * np.array([one.moves for one in patterns])[mine]
    iteration = (by_iteration * (1 + found.times)).astype(np.int64)
    sector = (by_sector * found.sectors).astype(np.int64)
    begin = found.begin + moved.sum(axis=1) + iteration * found.stride
    end = begin + found.end - found.begin
    sectors = _pieces(begin, end, SECTOR_BYTES)
    sector = begin // SECTOR_BYTES + np.minimum(sector, sectors - 1)
    is_first = sector * SECTOR_BYTES // LINE_BYTES == begin // LINE_BYTES
    sharing = _in_its_line(pc, whose, rows["time"][order], rows["begin"][order])[row]
    steps = np.array([max(1, one.stretches.steps) for one in patterns])[mine]
    return Sample(
        pc=found.pc,
        kind=found.kind,
        weight=part.weights[number],
        lines=_of_piece(sector, begin, end, LINE_BYTES) / np.where(is_first, sharing, 1),
        grains=_of_piece(sector, begin, end, grain_bytes),
        run=found.end - found.begin,
        asked=found.asked / (sectors * SECTOR_BYTES),
        block=blocks,
        place=(found.time + iteration * found.period) / steps,
        begin=sector * SECTOR_BYTES,
        draw=draw,
        second_draw=second_draw,
    )


def with_draws(sample: Sample) -> Sample:
    """Repeat each touch DRAWS times; the draws fill the unit square evenly."""
    columns = {n: np.repeat(getattr(sample, n), DRAWS) for n in Sample.__dataclass_fields__}
    number = np.tile(np.arange(DRAWS), len(sample.pc))
    columns["weight"] = columns["weight"] / DRAWS
    columns["draw"] = (columns["draw"] + number / DRAWS) % 1.0
    columns["second_draw"] = (columns["second_draw"] + number * 3 % DRAWS / DRAWS) % 1.0
    return Sample(**columns)


def _by_instruction(rows: Columns) -> Array:
    """Return the order of stretches by instruction, then by pattern, without fences."""
    order = by_number(rows["pc"])
    return np.asarray(order[rows["kind"][order] != FENCE])


def _touches(pattern: Pattern) -> Array:
    """Return the number of touches of each stretch in a block."""
    rows = pattern.stretches
    return rows.sectors * (1 + rows.times) if rows.times.any() else rows.sectors


@dataclass(frozen=True)
class _Parts:
    """Parts of a table of stretches, each of an instruction in a pattern, from row `first` on.

    `touches` are those of all rows up to each, `before` those before each part, `counts` those of
    each part in all blocks; `sizes` of them are sampled. `begins` are the parts with which
    instructions begin.
    """

    touches: Array
    first: Array
    before: Array
    counts: Array
    sizes: Array
    begins: Array

    @classmethod
    def of(cls, pc: Array, whose: Array, touches: Array, blocks: Array, each: int) -> _Parts:
        """Return the parts of a table, of patterns with some numbers of blocks.

        `each` touches of an instruction are sampled.
        """
        first = np.flatnonzero((np.diff(pc, prepend=-1) != 0) | np.diff(whose, prepend=-1))
        begins = np.flatnonzero(np.diff(pc[first], prepend=-1))
        touches = np.cumsum(touches)
        before = np.append(0, touches)[first]
        counts = np.diff(np.append(before, touches[-1])) * blocks[whose[first]]
        of_pc = np.repeat(np.add.reduceat(counts, begins), np.diff(np.append(begins, len(first))))
        sizes = np.maximum(1, np.rint(each * counts / of_pc)).astype(np.int64)
        return cls(touches, first, before, counts, sizes, begins)

    @property
    def weights(self) -> Array:
        """Number of touches that a sampled one stands for, by part."""
        return np.asarray(self.counts / self.sizes)

    def points(self) -> tuple[Array, Array]:
        """Return the part of each sampled touch and its point in the unit cube.

        The first dimension is along the stretches of the part.
        """
        number = np.repeat(np.arange(len(self.sizes)), self.sizes)
        of_pc = np.add.reduceat(self.sizes, self.begins)
        known = {count: spread(count, DIMENSIONS) for count in set(of_pc.tolist())}
        points = np.concatenate([known[count] for count in of_pc.tolist()])
        counts = np.repeat(of_pc, of_pc)
        begun = np.cumsum(self.sizes) - self.sizes
        begun -= np.repeat(begun[self.begins], np.diff(np.append(self.begins, len(begun))))
        points[:, 0] = (points[:, 0] * counts - begun[number]) / self.sizes[number]
        return number, points

    def row(self, number: Array, along: Array) -> Array:
        """Return the row at a fraction, from 0 to 1, of the touches of its part."""
        begin = self.before[number]
        end = np.append(self.before[1:], self.touches[-1])[number]
        touch = begin + np.floor(along * (end - begin)).astype(np.int64)
        return np.asarray(np.searchsorted(self.touches, touch, side="right"))


def _in_its_line(pc: Array, whose: Array, time: Array, begin: Array) -> Array:
    """Return the number of an instruction's simultaneous stretches that begin in each one's line.

    They share the line, and so its room in a cache.
    """
    _, number = groups(pc, whose, time, begin // LINE_BYTES)
    return np.bincount(number)[number]


def _of_piece(sector: Array, begin: Array, end: Array, size: int) -> Array:
    """Return 1 / n for sectors, with n the stretch's sectors in the same piece of `size` bytes."""
    piece = sector * SECTOR_BYTES // size * size
    return 1 / _pieces(np.maximum(begin, piece), np.minimum(end, piece + size), SECTOR_BYTES)


def _pieces(begin: Array, end: Array, size: int) -> Array:
    """Return the number of pieces of `size` bytes with bytes of an interval."""
    return np.asarray((end - 1) // size - begin // size + 1)


def _numbered(patterns: Sequence[Pattern], mine: Array, parts: Array) -> Array:
    """Return the blocks at given fractions, from 0 to 1, of all ranges of their patterns."""
    table = np.concatenate([np.array(one.ranges) for one in patterns])
    ends = np.cumsum(table[:, 1] - table[:, 0] + 1)
    last = ends[np.cumsum([len(one.ranges) for one in patterns]) - 1]
    begin = np.append(0, last[:-1])
    place = begin[mine] + (parts * (last - begin)[mine]).astype(np.int64)
    at = np.searchsorted(ends, place, side="right")
    return np.asarray(table[at, 1] - (ends[at] - 1 - place))
