"""How long ago what a launch touches was touched before: by the block, on the SM, by any block.

A sample of the touches of each instruction stands for all. Time is counted in lives of a block: of
so many blocks that run at a time each begins that part of a life later than the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from gpusim.launch import Launch
from gpusim.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.prediction.memory.lookup import NEVER, Dimension, Wanted, latest
from gpusim.prediction.memory.patterns import Pattern, Patterns, coordinates
from gpusim.prediction.memory.touched import COLUMNS, STORE, Stretches

Array = np.ndarray[Any, Any]

SAMPLED = 48  # touches of each instruction
SOON = 0.1  # lives of a block within which neighbouring lines come to DRAM together
MANY = (
    8  # sectors that are as common, of which there have to be so many to tell how common they are
)
MOST_ITERATIONS = 64  # of a loop of a block that was run, whose sectors are told apart

# Multiples of these fill a cube evenly (Roberts, "The Unreasonable Effectiveness of Quasirandom
# Sequences", 2018): powers of the root of x^5 = x + 1.
_ROOT = 1.1673039782614187
_ONE_AFTER_THE_OTHER = 1e-8  # lives, in which blocks begin that begin together
_STEPS = _ROOT ** -np.arange(1.0, 5.0)


@dataclass(frozen=True)
class Touches:
    """A sample of the sectors that a launch touches: who does, when, and how many it stands for.

    `place` is when in its block's life, `time` when in the launch. `own` says by how long after the
    block itself touched the sector before, `on_sm` after the SM loaded or stored it, `line` after
    it did so to its line; `gap` by how long after any block touched what DRAM fetches with it, and
    `by_line` after its line: infinite where none did. `after_all` is how long before the launch's
    end its line was touched last, and `after_grain` what DRAM fetches with it. `is_late` says that
    of blocks which begin together none touches it earlier in its life. `lines` are 128-byte lines
    for a sector, `grains` what DRAM fetches for one, `run` the bytes side by side that are touched
    with it, and `near` of the lines on both sides those that are touched about the same time.
    """

    pc: Array
    kind: Array
    weight: Array
    lines: Array
    grains: Array
    run: Array
    block: Array
    place: Array
    time: Array
    begin: Array
    own: Array
    on_sm: Array
    line: Array
    gap: Array
    by_line: Array
    after_all: Array
    after_grain: Array
    is_late: Array
    near: Array

    def __len__(self) -> int:
        return len(self.pc)


@dataclass(frozen=True)
class Course:
    """How a launch goes on: so many blocks `at_once`, on so many `sms`; DRAM fetches grains."""

    launch: Launch
    at_once: int
    sms: int
    grain_bytes: int

    @property
    def life(self) -> float:
        """How much later each block begins than the one before, in lives of a block.

        The first ones begin together and the last one ends with the launch; evenly between.
        """
        return max(_ONE_AFTER_THE_OTHER, (self.length - 1) / self.launch.blocks)

    @property
    def length(self) -> float:
        """How long the launch takes, in lives of a block."""
        return max(1.0, self.launch.blocks / self.at_once)

    @property
    def grid(self) -> tuple[tuple[int, int], ...]:
        """Extent of each dimension of the grid, and by how much block numbers differ along it."""
        x, y, z = self.launch.grid
        return ((x, 1), (y, x), (z, x * y))


def touches_of(patterns: Patterns, course: Course) -> Touches:
    """Return a sample of what a launch touches, with how long ago it was touched before."""
    parts = [_of_linear(patterns, course)]
    if patterns.single:
        parts.append(_of_single(patterns, course))
    return _joined(parts)


def _joined(parts: list[Touches]) -> Touches:
    names = Touches.__dataclass_fields__
    columns = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
    return Touches(**columns)


# -- of all blocks ---------------------------------------------------------------------------


def _of_linear(patterns: Patterns, course: Course) -> Touches:
    sample = _sampled(patterns.linear, course)
    grids = [_grid(pattern, course) for pattern in patterns.linear]

    def last(wanted: Wanted, life: float) -> Array:
        best = np.full(len(wanted), NEVER)
        for pattern, grid in zip(patterns.linear, grids, strict=True):
            rows = pattern.stretches
            rows = rows.at(rows.kind <= STORE) if wanted.sms else rows
            blocks = np.zeros(len(rows), dtype=np.int64)
            found = latest(rows, grid, wanted, blocks, np.array(pattern.ranges), life)
            best = np.maximum(best, found)
        return best

    return _with_gaps(sample, course, last, _last_own(patterns.linear, sample, course))


def _grid(pattern: Pattern, course: Course) -> list[Dimension]:
    return [
        Dimension(move, extent, ids, ids * course.life)
        for move, (extent, ids) in zip(pattern.moves, course.grid, strict=True)
    ]


@dataclass(frozen=True)
class _Sample:
    """Touches that were chosen: of which pattern, when, where, and how many each stands for."""

    pattern: Array
    pc: Array
    kind: Array
    weight: Array
    lines: Array
    grains: Array
    run: Array
    block: Array
    place: Array
    begin: Array


def _sampled(patterns: tuple[Pattern, ...], course: Course) -> _Sample:
    """Choose touches of each instruction, evenly over blocks, stretches and iterations."""
    names = _Sample.__dataclass_fields__
    parts: list[dict[str, Array]] = [{n: np.zeros(0, dtype=np.int64) for n in names}]
    pcs = np.concatenate([np.zeros(0, dtype=np.int64), *(p.stretches.pc for p in patterns)])
    for pc in np.unique(pcs).tolist():
        mine = [(n, p) for n, p in enumerate(patterns) if (p.stretches.pc == pc).any()]
        parts += _of_instruction(pc, mine, course)
    return _Sample(**{n: np.concatenate([part[n] for part in parts]) for n in names})


def _of_instruction(
    pc: int, patterns: list[tuple[int, Pattern]], course: Course
) -> Iterator[dict[str, Array]]:
    """Yield the touches that are chosen of one instruction, pattern by pattern."""
    counts = []
    for _, pattern in patterns:
        rows = pattern.stretches.at(pattern.stretches.pc == pc)
        counts.append(float((rows.sectors * (1 + rows.times)).sum()) * pattern.blocks)
    total = sum(counts)
    for (number, pattern), count in zip(patterns, counts, strict=True):
        size = max(1, round(SAMPLED * count / total))
        rows = pattern.stretches.at(pattern.stretches.pc == pc)
        yield _chosen(number, rows, pattern, size, count / size, course)


def _chosen(
    number: int, rows: Stretches, pattern: Pattern, size: int, weight: float, course: Course
) -> dict[str, Array]:
    evenly = np.arange(1, size + 1)[:, None] * _STEPS % 1.0
    touches = np.cumsum(rows.sectors * (1 + rows.times))
    row = np.searchsorted(touches, evenly[:, 0] * touches[-1], side="right")
    blocks = _numbered(pattern.ranges, evenly[:, 1])
    iteration = (evenly[:, 2] * (1 + rows.times[row])).astype(np.int64)
    sector = (evenly[:, 3] * rows.sectors[row]).astype(np.int64)
    begin = rows.begin[row] + coordinates(blocks, course.launch) @ np.array(pattern.moves)
    begin = begin + iteration * rows.stride[row]
    end = begin + rows.end[row] - rows.begin[row]
    sectors = _pieces(begin, end, SECTOR_BYTES)
    sector = begin // SECTOR_BYTES + np.minimum(sector, sectors - 1)
    return {
        "pattern": np.full(size, number),
        "pc": rows.pc[row],
        "kind": rows.kind[row],
        "weight": np.full(size, weight),
        "lines": _pieces(begin, end, LINE_BYTES) / sectors,
        "grains": _pieces(begin, end, course.grain_bytes) / sectors,
        "run": rows.end[row] - rows.begin[row],
        "block": blocks,
        "place": (rows.time[row] + iteration * rows.period[row]) / max(1, rows.steps),
        "begin": sector * SECTOR_BYTES,
    }


def _pieces(begin: Array, end: Array, size: int) -> Array:
    """Return how many pieces of a size bytes lie in."""
    return np.asarray((end - 1) // size - begin // size + 1)


def _numbered(ranges: tuple[tuple[int, int], ...], parts: Array) -> Array:
    """Return the blocks of ranges that lie at parts of all of them, from 0 to 1."""
    table = np.array(ranges)
    ends = np.cumsum(table[:, 1] - table[:, 0] + 1)
    place = (parts * ends[-1]).astype(np.int64)
    at = np.searchsorted(ends, place, side="right")
    return np.asarray(table[at, 1] - (ends[at] - 1 - place))


def _last_own(patterns: tuple[Pattern, ...], sample: _Sample, course: Course) -> Array:
    """Return when in its life a block itself touched last what it touches."""
    best = np.full(len(sample.pc), NEVER)
    places = coordinates(sample.block, course.launch)
    for pattern in patterns:
        moved = places @ np.array(pattern.moves)
        begin = sample.begin - moved
        wanted = Wanted(begin, begin + SECTOR_BYTES, sample.place, sample.block)
        rows = pattern.stretches
        blocks = np.zeros(len(rows), dtype=np.int64)
        found = latest(rows, (), wanted, blocks, np.array([(0, 0)]), 0.0)
        table = np.array(pattern.ranges)
        at = np.searchsorted(table[:, 0], sample.block, side="right") - 1
        mine = (at >= 0) & (sample.block <= table[np.maximum(at, 0), 1])
        best = np.maximum(best, np.where(mine, found, NEVER))
    return best


def _with_gaps(sample: _Sample, course: Course, last: Any, own: Array) -> Touches:
    """Look up when each sector was touched before, and its line, and those beside that."""
    life, time = course.life, sample.block * course.life + sample.place

    def around(size: int, at: Array, further: int = 0, sms: int = 0) -> Wanted:
        begin = sample.begin // size * size + further
        return Wanted(begin, begin + size, at, sample.block, sms)

    never = np.full(len(time), np.inf)
    grain = course.grain_bytes
    sides = (around(LINE_BYTES, time + SOON, side) for side in (-LINE_BYTES, LINE_BYTES))
    return Touches(
        pc=sample.pc,
        kind=sample.kind,
        weight=sample.weight,
        lines=sample.lines,
        grains=sample.grains,
        run=sample.run,
        block=sample.block,
        place=sample.place,
        time=time,
        begin=sample.begin,
        own=sample.place - own,
        on_sm=time - last(around(SECTOR_BYTES, time, sms=course.sms), life),
        line=time - last(around(LINE_BYTES, time, sms=course.sms), life),
        gap=time - last(around(grain, time), life),
        by_line=time - last(around(LINE_BYTES, time), life),
        after_all=course.length - last(around(LINE_BYTES, never), life),
        after_grain=course.length - last(around(grain, never), life),
        is_late=np.isinf(last(around(grain, sample.place), 0.0)),
        near=np.mean([last(side, life) >= time - SOON for side in sides], axis=0),
    )


# -- of some blocks --------------------------------------------------------------------------


def _of_single(patterns: Patterns, course: Course) -> Touches:
    """Return touches of instructions whose addresses no rule gives for the blocks that did not run.

    Blocks side by side say how often neighbours touch the same. Beyond these, a sector that so
    many of the blocks spread over the grid touch is taken to be touched at that rate.
    """
    single, launch = patterns.single, course.launch
    near = patterns.neighbours
    pattern = {b: Pattern(one, (0, 0, 0), ((b, b),)) for b, one in single.items()}
    later = near[len(near) // 2 :]
    blocks_apart = len(patterns.spread)
    totals: dict[int, float] = {}
    for b in patterns.spread:
        rows = single[b]
        for pc, count in _counts(rows).items():
            totals[pc] = totals.get(pc, 0.0) + count * launch.blocks / blocks_apart
    sample = _sampled(tuple(pattern[b] for b in later), course)
    counted = {
        pc: float(sample.weight[sample.pc == pc].sum()) for pc in np.unique(sample.pc).tolist()
    }
    scale = np.array([totals.get(pc, 0.0) / counted[pc] for pc in sample.pc.tolist()])
    sample = replace(sample, weight=sample.weight * scale)
    everyone, owner = _side_by_side(single, near)

    @cache
    def rate(size: int) -> Array:
        return _rates(single, patterns.spread, sample.begin, size)

    def last(wanted: Wanted, life: float) -> Array:
        rows, numbers = everyone, owner
        if wanted.sms:
            rows, numbers = rows.at(rows.kind <= STORE), numbers[rows.kind <= STORE]
        found = latest(rows, (), wanted, numbers, np.array([(0, launch.blocks)]), life)
        if not life:
            return found
        of_blocks = rate(int(wanted.end[0] - wanted.begin[0]))
        by_chance = _by_chance(of_blocks, course, wanted.sms or 1)
        by_chance = np.where(np.isinf(wanted.time), course.length, wanted.time) - by_chance
        return np.where(np.isfinite(found), found, by_chance)

    return _with_gaps(
        sample, course, last, _last_own(tuple(pattern[b] for b in later), sample, course)
    )


def _counts(rows: Stretches) -> dict[int, float]:
    touched = rows.sectors * (1 + rows.times)
    return {pc: float(touched[rows.pc == pc].sum()) for pc in np.unique(rows.pc).tolist()}


def _side_by_side(
    single: Mapping[int, Stretches], near: tuple[int, ...]
) -> tuple[Stretches, Array]:
    """Return the stretches of some blocks together, and whose each is."""
    rows = [single[b] for b in near]
    columns = {n: np.concatenate([getattr(one, n) for one in rows]) for n in COLUMNS}
    steps = max(one.steps for one in rows)
    owner = np.concatenate([np.full(len(one), b) for b, one in zip(near, rows, strict=True)])
    return Stretches(**columns, steps=steps), owner


def _rates(
    single: Mapping[int, Stretches], spread: tuple[int, ...], begin: Array, size: int
) -> Array:
    """Return what fraction of the blocks touches the pieces of a size around addresses.

    What c of n blocks touch is touched at the rate (c + 1) f(c + 1) / ((n - c) f(c)), with f(c) the
    number of pieces that c blocks touch (Good, "The Population Frequencies of Species", 1953);
    where these are few, at c / n.
    """
    found = [np.unique(_expanded(single[b]) * SECTOR_BYTES // size) for b in spread]
    values, counts = np.unique(np.concatenate(found), return_counts=True)
    blocks = len(spread)
    frequency = np.bincount(counts, minlength=blocks + 2)
    rate = np.arange(blocks + 1) / blocks
    for c in range(1, blocks):
        if min(frequency[c], frequency[c + 1]) >= MANY:
            rate[c] = (c + 1) * frequency[c + 1] / ((blocks - c) * frequency[c])
    rate[1] = min(rate[1], 2 * frequency[2] / max(1, (blocks - 1) * frequency[1]))
    rate[0] = rate[1]
    pieces = begin // size
    at = np.minimum(np.searchsorted(values, pieces), len(values) - 1)
    seen = np.where(values[at] == pieces, counts[at], 0)
    return np.asarray(rate[seen])


def _expanded(rows: Stretches) -> Array:
    """Return the sectors of stretches, of those in loops some of the iterations."""
    first, count = rows.begin // SECTOR_BYTES, rows.sectors
    sectors = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    stride = np.repeat(rows.stride // SECTOR_BYTES, count)
    times = np.repeat(rows.times, count)
    made = [sectors]
    for iteration in range(1, min(MOST_ITERATIONS, int(times.max(initial=0))) + 1):
        made.append((sectors + iteration * stride)[times >= iteration])
    return np.concatenate(made)


def _by_chance(rate: Array, course: Course, every: int) -> Array:
    """Return how long ago sectors were touched that blocks touch at a rate: evenly spread draws.

    By one of `every` so many blocks: by each, or those of an SM. Infinite where that is before the
    launch, of which a touch is taken to be at any time.
    """
    draws = np.arange(1, len(rate) + 1) * _STEPS[0] % 1.0
    begun = np.arange(1, len(rate) + 1) * _STEPS[1] % 1.0 * course.launch.blocks // every
    with np.errstate(divide="ignore"):
        blocks = np.where(
            rate > 0, np.log1p(-draws) / np.log1p(-np.minimum(rate, 1 - 1e-9)), np.inf
        )
    return np.where(blocks < begun, np.ceil(blocks) * every * course.life, np.inf)
