"""A weighted sample of a launch's touches, of each instruction.

It is quasi-random over blocks, stretches and iterations, and deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.launch.grid import Launch
from gpusim.prediction.arithmetic.grouping import groups
from gpusim.prediction.arithmetic.quasirandom import spread
from gpusim.prediction.locality.patterns import Pattern, coordinates
from gpusim.prediction.streams.stretches import FENCE, Stretches

Array = np.ndarray[Any, Any]

SAMPLED = 48  # touches of each instruction
DRAWS = 8  # draws for each touch at a data-dependent address
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


def sampled(patterns: tuple[Pattern, ...], launch: Launch, grain_bytes: int) -> Sample:
    """Sample touches of each instruction, evenly over blocks, stretches and iterations."""
    names = Sample.__dataclass_fields__
    parts: list[dict[str, Array]] = [{n: np.zeros(0, dtype=np.int64) for n in names}]
    touched = (p.stretches.pc[p.stretches.kind != FENCE] for p in patterns)
    pcs = np.concatenate([np.zeros(0, dtype=np.int64), *touched])
    by_pc = [p.stretches.by_pc() for p in patterns]
    for pc in np.unique(pcs).tolist():
        mine = [(p, rows[pc]) for p, rows in zip(patterns, by_pc, strict=True) if pc in rows]
        parts += _of_instruction(mine, launch, grain_bytes)
    return Sample(**{n: np.concatenate([part[n] for part in parts]) for n in names})


def with_draws(sample: Sample) -> Sample:
    """Repeat each touch DRAWS times; the draws fill the unit square evenly."""
    columns = {n: np.repeat(getattr(sample, n), DRAWS) for n in Sample.__dataclass_fields__}
    number = np.tile(np.arange(DRAWS), len(sample.pc))
    columns["weight"] = columns["weight"] / DRAWS
    columns["draw"] = (columns["draw"] + number / DRAWS) % 1.0
    columns["second_draw"] = (columns["second_draw"] + number * 3 % DRAWS / DRAWS) % 1.0
    return Sample(**columns)


def _of_instruction(
    patterns: Sequence[tuple[Pattern, Stretches]], launch: Launch, grain_bytes: int
) -> Iterator[dict[str, Array]]:
    """Yield the sampled touches of one instruction, by pattern; its stretches come with each."""
    counts = [
        float((rows.sectors * (1 + rows.times)).sum()) * pattern.blocks
        for pattern, rows in patterns
    ]
    total = sum(counts)
    sizes = [max(1, round(SAMPLED * count / total)) for count in counts]
    points = spread(sum(sizes), DIMENSIONS)
    begun = 0
    for (pattern, rows), count, size in zip(patterns, counts, sizes, strict=True):
        mine = points[begun : begun + size]
        mine[:, 0] = (mine[:, 0] * len(points) - begun) / size
        yield _chosen(rows, pattern, mine, count / size, launch, grain_bytes)
        begun += size


def _chosen(
    rows: Stretches,
    pattern: Pattern,
    points: Array,
    weight: float,
    launch: Launch,
    grain_bytes: int,
) -> dict[str, Array]:
    along, by_block, by_iteration, by_sector, draw, second_draw = points.T
    touches = np.cumsum(rows.sectors * (1 + rows.times))
    row = np.searchsorted(touches, along * touches[-1], side="right")
    blocks = _numbered(pattern.ranges, by_block)
    iteration = (by_iteration * (1 + rows.times[row])).astype(np.int64)
    sector = (by_sector * rows.sectors[row]).astype(np.int64)
    begin = rows.begin[row] + coordinates(blocks, launch) @ np.array(pattern.moves)
    begin = begin + iteration * rows.stride[row]
    end = begin + rows.end[row] - rows.begin[row]
    sectors = _pieces(begin, end, SECTOR_BYTES)
    sector = begin // SECTOR_BYTES + np.minimum(sector, sectors - 1)
    is_first = sector * SECTOR_BYTES // LINE_BYTES == begin // LINE_BYTES
    sharing = _in_its_line(rows)[row]
    return {
        "pc": rows.pc[row],
        "kind": rows.kind[row],
        "weight": np.full(len(row), weight),
        "lines": _of_piece(sector, begin, end, LINE_BYTES) / np.where(is_first, sharing, 1),
        "grains": _of_piece(sector, begin, end, grain_bytes),
        "run": rows.end[row] - rows.begin[row],
        "asked": rows.asked[row] / (sectors * SECTOR_BYTES),
        "block": blocks,
        "place": (rows.time[row] + iteration * rows.period[row]) / max(1, rows.steps),
        "begin": sector * SECTOR_BYTES,
        "draw": draw,
        "second_draw": second_draw,
    }


def _in_its_line(rows: Stretches) -> Array:
    """Return the number of an instruction's simultaneous stretches that begin in each one's line.

    They share the line, and so its room in a cache.
    """
    _, number = groups(rows.time, rows.begin // LINE_BYTES)
    return np.bincount(number)[number]


def _of_piece(sector: Array, begin: Array, end: Array, size: int) -> Array:
    """Return 1 / n for sectors, with n the stretch's sectors in the same piece of `size` bytes."""
    piece = sector * SECTOR_BYTES // size * size
    return 1 / _pieces(np.maximum(begin, piece), np.minimum(end, piece + size), SECTOR_BYTES)


def _pieces(begin: Array, end: Array, size: int) -> Array:
    """Return the number of pieces of `size` bytes with bytes of an interval."""
    return np.asarray((end - 1) // size - begin // size + 1)


def _numbered(ranges: tuple[tuple[int, int], ...], parts: Array) -> Array:
    """Return the blocks at given fractions, from 0 to 1, of all ranges."""
    table = np.array(ranges)
    ends = np.cumsum(table[:, 1] - table[:, 0] + 1)
    place = (parts * ends[-1]).astype(np.int64)
    at = np.searchsorted(ends, place, side="right")
    return np.asarray(table[at, 1] - (ends[at] - 1 - place))
