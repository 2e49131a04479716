"""Compulsory traffic of a launch: its distinct loaded and stored sectors, once each.

The term is the roofline model's. Linear addresses are united without a visit to every block; of
data-dependent ones, the sampled blocks are extrapolated to the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.launch.grid import Launch, places_of
from gpusim.prediction.arithmetic.grouping import distinct, groups
from gpusim.prediction.locality.patterns import KEPT_LAUNCHES, Pattern, Patterns
from gpusim.prediction.locality.pieces import MOST_ITERATIONS, Pieces, different_sectors, numbers_of
from gpusim.prediction.locality.random_access import Asked, rates
from gpusim.prediction.streams.kinds_by_pc import ATOMIC, LOAD, PAST_L1, STORE
from gpusim.prediction.streams.local_rows import are_rows
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

Kinds = tuple[int, ...]

MOST = 1 << 18  # separate intervals of memory
FAR = 1 << 60  # bytes: farther apart than any two addresses
ASKED = 1 << 14  # sampled sectors, about, in the estimate of sharing between blocks
DRAWS = 16  # of the time since another block touched a sector

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Compulsory:
    """Bytes of the distinct sectors that are loaded, and of sectors stored to or updated."""

    loaded_bytes: int = 0
    stored_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Loaded and stored bytes."""
        return self.loaded_bytes + self.stored_bytes


@dataclass(frozen=True)
class Intervals:
    """Bytes from `begin` up to `end`, in order, with at least a whole sector between any two.

    They stand for `weight` times as many.
    """

    begin: Array
    end: Array
    weight: float = 1.0

    @classmethod
    def of(cls, begin: Array, end: Array, weight: float = 1.0) -> Intervals:
        """Unite intervals with less than a whole sector between them."""
        if not len(begin):
            return cls(begin, end, weight)
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order])
        is_first = np.append(True, begin[1:] >= end[:-1] + SECTOR_BYTES)
        is_last = np.append(is_first[1:], True)
        return cls(begin[is_first], end[is_last], weight)

    @property
    def sectors(self) -> float:
        """Number of sectors they cover, times `weight`."""
        first, last = self.begin // SECTOR_BYTES, (self.end - 1) // SECTOR_BYTES
        return self.weight * float((last - first + 1).sum())

    def holds(self, places: Array) -> Array:
        """Return which of some places, in order, lie within an interval, as a mask."""
        first, end = (np.searchsorted(places, edge) for edge in (self.begin, self.end))
        some = np.flatnonzero(first < end)
        edges = np.zeros(len(places) + 1, dtype=np.int8)
        edges[first[some]] += 1
        edges[end[some]] -= 1
        return np.cumsum(edges[:-1], dtype=np.int8).astype(bool)

    def along(self, move: int, extent: int) -> Intervals:
        """Return the union of `extent` copies, each `move` bytes after the one before."""
        if extent == 1 or not move:
            return self
        first, size = min(0, move * (extent - 1)), abs(move)
        if size < int((self.end - self.begin).min()) + SECTOR_BYTES:
            last = first + size * (extent - 1)
            return Intervals.of(self.begin + first, self.end + last, self.weight)
        return self.at(first + size * np.arange(extent))

    def at(self, offsets: Array) -> Intervals:
        """Return the union of ordered copies at byte offsets; of too many, the first, weighted."""
        count = min(len(offsets), max(1, MOST // len(self.begin)))
        moved = offsets[:count, None]
        weight = self.weight * len(offsets) / count
        begin, end = (self.begin + moved).ravel(), (self.end + moved).ravel()
        apart = int(np.diff(offsets[:count]).min(initial=FAR))
        if apart >= int(self.end[-1] - self.begin[0]) + SECTOR_BYTES:  # in order, none united
            return Intervals(begin, end, weight)
        return Intervals.of(begin, end, weight)


def compulsory_of(patterns: Patterns) -> Compulsory:
    """Return the compulsory traffic of a launch: of linear patterns alone once for all GPUs."""
    if patterns.single or patterns.spread:
        return _compulsory(patterns)
    return _kept(patterns.linear, patterns.launch)


@lru_cache(maxsize=KEPT_LAUNCHES)
def _kept(linear: tuple[Pattern, ...], launch: Launch) -> Compulsory:
    return _compulsory(Patterns(launch, linear, {}, (), ()))


def _compulsory(patterns: Patterns) -> Compulsory:
    loaded, stored = (
        round(SECTOR_BYTES * _sectors(patterns, kinds))
        for kinds in ((LOAD, PAST_L1), (STORE, ATOMIC))
    )
    return Compulsory(loaded, stored)


def _sectors(patterns: Patterns, kinds: Kinds) -> float:
    """Return the number of distinct sectors touched by accesses of some kinds."""
    whole, in_part = [Intervals(_NONE, _NONE)], 0.0
    known: dict[tuple[Any, ...], float] = {}  # sectors of unions in part: many patterns are alike
    copies = [one for pattern in patterns.linear for one in _of_pattern(pattern, kinds, patterns)]
    for one in (*_together(copies), *(one for one in copies if not one.is_whole)):
        if one.key in known:
            in_part += known[one.key]
            continue
        found = one.united()
        if found.weight != 1:
            in_part += known.setdefault(one.key, found.sectors)
            continue
        whole.append(found)
        if sum(len(some.begin) for some in whole[1:]) > MOST:
            whole = [_united(whole)]
    linear = _united(whole)
    return linear.sectors + in_part + _by_data(patterns, kinds, linear)


def _united(parts: Sequence[Intervals]) -> Intervals:
    begin, end = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("begin", "end")
    )
    return Intervals.of(begin, end)


@dataclass(frozen=True)
class _Copies:
    """Intervals of a block, at each step along `dimensions` (move, extent), at each offset."""

    block: Intervals
    dimensions: Sequence[tuple[int, int]]
    offsets: Array

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """A key, equal for copies a multiple of sectors apart."""
        at = self.block.begin[0] // SECTOR_BYTES * SECTOR_BYTES
        begin, end = ((one - at).tobytes() for one in (self.block.begin, self.block.end))
        return begin, end, *self.dimensions, self.offsets.tobytes()

    @property
    def is_whole(self) -> bool:
        """Whether none of them are left out of their union, however few are next to others."""
        count = math.prod(extent for _, extent in self.dimensions) * len(self.offsets)
        return len(self.block.begin) * count <= MOST

    def united(self) -> Intervals:
        """Return their union."""
        found = self.block
        for move, extent in self.dimensions:
            found = found.along(move, extent)
        return found.at(self.offsets)


def _together(copies: Sequence[_Copies]) -> Iterator[_Copies]:
    """Yield the whole ones of copies; as one, where blocks that are copied alike leave it whole."""
    alike: dict[tuple[Any, ...], list[_Copies]] = {}
    for one in copies:
        if one.is_whole:
            alike.setdefault((*one.dimensions, one.offsets.tobytes()), []).append(one)
    for some in alike.values():
        made = _Copies(_united([one.block for one in some]), some[0].dimensions, some[0].offsets)
        yield from [made] if made.is_whole else some


def _of_pattern(pattern: Pattern, kinds: Kinds, patterns: Patterns) -> Iterator[_Copies]:
    """Yield the intervals of a pattern, by loop and by length of the row of blocks along x."""
    rows = _among(pattern.stretches, kinds)
    different, number = groups(rows.times, rows.stride)
    for group, one in enumerate(different.tolist()):
        times, stride, mine = int(rows.times[one]), int(rows.stride[one]), number == group
        block = Intervals.of(rows.begin[mine], rows.end[mine])
        for count, offsets in _offsets(pattern, patterns):
            steps, left = _steps(offsets)
            dimensions = [(stride, times + 1), (pattern.moves[0], count), *steps]
            yield _Copies(block, sorted(dimensions, key=lambda one: abs(one[0])), left)


def _offsets(pattern: Pattern, patterns: Patterns) -> Iterator[tuple[int, Array]]:
    """Yield lengths of contiguous rows of blocks along x, and the byte offsets of their starts."""
    extent, (first, last) = patterns.launch.grid[0], np.array(pattern.ranges).T
    rows = last // extent - first // extent + 1
    row = np.repeat(first // extent - np.cumsum(rows) + rows, rows) + np.arange(rows.sum())
    begin = np.maximum(row * extent, np.repeat(first, rows))
    count = np.minimum((row + 1) * extent, np.repeat(last, rows) + 1) - begin
    offset = np.stack(places_of(begin, patterns.launch.grid), axis=1) @ np.array(pattern.moves)
    for one in distinct(count).tolist():
        yield one, distinct(offset[count == one])


def _steps(offsets: Array) -> tuple[list[tuple[int, int]], Array]:
    """Return offsets as nested (step, count) loops, and the remaining offsets."""
    steps = []
    while len(offsets) > 1:
        apart = np.diff(offsets)
        count = int((apart != apart[0]).argmax()) + 1 if (apart != apart[0]).any() else len(offsets)
        if len(offsets) % count:
            break
        table = offsets.reshape(-1, count)
        if (table - table[:, :1] != table[0] - table[0, 0]).any():
            break
        steps.append((int(apart[0]), count))
        offsets = table[:, 0]
    return steps, offsets


def _by_data(patterns: Patterns, kinds: Kinds, linear: Intervals) -> float:
    """Return the number of sectors at data-dependent addresses, outside the linear ones.

    Exact if all blocks ran, else an estimate.
    """
    rows = [_among(one, kinds) for one in patterns.single.values()]
    if not any(map(len, rows)):
        return 0.0
    blocks = patterns.launch.blocks
    if len(rows) == blocks:
        different = different_sectors(rows)
        return float(len(different) - linear.holds(different * SECTOR_BYTES).sum())
    pcs = numbers_of(one.pc for one in rows)
    pieces = patterns.pieces
    begin = pieces.piece * SECTOR_BYTES
    pieces = pieces.at(pieces.by_pcs(pcs) & ~are_rows(begin) & ~linear.holds(begin))
    found = _of_all(pieces.once(), blocks)
    return min(found * _repeated(rows), _between(rows))


def _of_all(spread: Pieces, blocks: int) -> float:
    """Return the number of distinct sectors of all blocks, from evenly `spread` sampled ones.

    A sector shared by blocks counts in the first of them.
    """
    if not len(spread.keys):
        return 0.0
    some = spread.at(spread.by_block[:: 1 + len(spread.keys) // ASKED])
    pc, piece = some.pc, some.piece
    asked = Asked(pc, piece, np.ones(len(pc), dtype=bool), np.ones(len(pc)))
    found = rates(spread, asked, np.zeros(len(pc)))
    draws = (np.arange(DRAWS) + 0.5) / DRAWS
    first = [np.minimum(1.0, found.blocks_ago(draw) / blocks).mean() for draw in draws]
    return float(np.mean(first)) * len(spread.keys) * blocks / spread.blocks


def _repeated(rows: Sequence[Stretches]) -> float:
    """Return the ratio of all iterations' sectors to the sectors kept in pieces."""
    if not any(one.times.any() for one in rows):
        return 1.0
    touched, made = (
        sum(float((one.sectors * (1 + np.minimum(one.times, most))).sum()) for one in rows)
        for most in (np.inf, MOST_ITERATIONS)
    )
    return touched / made


def _between(rows: Sequence[Stretches]) -> float:
    """Return the number of sectors from the first to the last touched one, about.

    The range of n random samples underestimates their population's: scaled by (n + 1) / (n - 1).
    """
    rows = [one for one in rows if len(one)]
    moved = [one.times * one.stride if one.times.any() else 0 for one in rows]
    both = list(zip(rows, moved, strict=True))
    begin = min(int((one.begin + np.minimum(0, far)).min()) for one, far in both)
    end = max(int((one.end + np.maximum(0, far)).max()) for one, far in both)
    return (end - begin) / SECTOR_BYTES * (len(rows) + 1) / max(1, len(rows) - 1)


def _among(rows: Stretches, kinds: Kinds) -> Stretches:
    mine = np.logical_or.reduce([rows.kind == kind for kind in kinds]) & ~are_rows(rows.begin)
    return rows if mine.all() else rows.at(mine)
