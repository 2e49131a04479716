"""When bytes were touched last before a time: solved for patterns, however many blocks they have.

A stretch of a pattern lies `move` bytes further for each step along a dimension: along the grid's,
and along the iterations of its loop. Of the dimensions along which it moves one is solved for, the
others are gone through; along one on which it does not move, the latest is taken that can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.prediction.streams.stretches import STORE, Stretches

Array = np.ndarray[Any, Any]
Pairs = tuple[Array, Array]  # numbers of what is wanted, and of stretches

MOST_CANDIDATES = 1 << 21  # are looked at in one go
MOST_PLACES = 1 << 22  # of one group of stretches; of more, those are looked for that can be
FEW_PLACES = 4  # of a stretch that can cover what is wanted, about
MOST_EXPANDED = 1 << 23  # of these, in one go
FEW_MOVED = 4  # places of a stretch that overlap, where another dimension is free
FAR = 1 << 60  # further round than addresses are apart
NEVER = -np.inf
_SOON = 1e-10


@dataclass(frozen=True)
class Dimension:
    """Along it a stretch has `extent` places: `move` bytes, `later` and block `ids` apart."""

    move: int
    extent: int
    ids: int
    later: float


@dataclass(frozen=True)
class Wanted:
    """Bytes that are looked for: from `begin` up to `end`, touched before a `time`.

    By blocks on the same SM as `block` alone where `sms` is not 0, by some `kinds` of
    touches alone if there are any. One row for each.
    """

    begin: Array
    end: Array
    time: Array
    block: Array
    sms: int = 0
    kinds: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.begin)

    def at(self, which: Any) -> Wanted:
        """Return some of them."""
        begin, end, time = self.begin[which], self.end[which], self.time[which]
        return Wanted(begin, end, time, self.block[which], self.sms, self.kinds)


def are_among(touches: Array, kinds: tuple[int, ...], *, is_of_sm: bool) -> Array:
    """Return which touches, by their kinds, count: those of some kinds if there are any.

    Else of those of an SM loads and stores.
    """
    if kinds:
        return np.isin(touches, kinds)
    return np.asarray(touches <= STORE) if is_of_sm else np.ones(len(touches), dtype=bool)


@dataclass(frozen=True)
class Candidates:
    """Places where a stretch covers what is wanted: `number` says which, `time` and `block` of it.

    Along the dimension that is solved it does so from `low` up to `high`.
    """

    number: Array
    time: Array
    block: Array
    low: Array
    high: Array

    def at(self, which: Any) -> Candidates:
        """Return some of them."""
        return Candidates(
            self.number[which],
            self.time[which],
            self.block[which],
            self.low[which],
            self.high[which],
        )


def latest(
    stretches: Stretches,
    grid: Sequence[Dimension],
    wanted: Wanted,
    blocks: Array,
    ranges: Array,
    life: float,
) -> Array:
    """Return when what is wanted was touched last by stretches, NEVER where it was not."""
    return LookedThrough(stretches, grid, blocks, ranges).latest(wanted, life)


class LookedThrough:
    """Stretches that are looked through, laid out once for all that is looked for among them.

    `grid` are the dimensions of the grid; `blocks` are the numbers of the blocks that have the
    stretches at its origin, one for each. Only blocks within `ranges` count.
    """

    def __init__(
        self, stretches: Stretches, grid: Sequence[Dimension], blocks: Array, ranges: Array
    ) -> None:
        self._steps, self._ranges = max(1, stretches.steps), ranges
        along = [d for d in grid if d.extent > 1]
        self._parts = [
            self._part(along, loop, stretches.at(mine), blocks[mine])
            for *loop, mine in _by_loop(stretches)
        ]

    def _part(
        self, along: Sequence[Dimension], loop: Sequence[int], rows: Stretches, blocks: Array
    ) -> _Part:
        times, stride, period = loop
        turns = [Dimension(stride, times + 1, 0, period / self._steps)] if times else []
        dimensions = [*along, *turns]
        return _Part(dimensions, rows, blocks, _Meetings(rows, [d for d in dimensions if d.move]))

    def latest(self, wanted: Wanted, life: float) -> Array:
        """Return when what is wanted was touched last, NEVER where it was not.

        A block begins `life` later than the one before, in lives of a block.
        """
        best = np.full(len(wanted), NEVER)
        for part in self._parts:
            search = _Search(part.dimensions, self._ranges, life)
            if search.combinations * len(part.rows) * len(wanted) > MOST_PLACES:
                search = _Windows(part.dimensions, self._ranges, life)
            near = part.meetings.near(wanted)
            places = search.places(sum(int(counts.sum()) for _, counts in near))
            size = max(1, MOST_CANDIDATES * len(wanted) // max(1, places))
            for start in range(0, len(wanted), size):
                here = slice(start, start + size)
                some, pairs = wanted.at(here), part.meetings.pairs(wanted.at(here), near, here)
                found = search.run(part.rows, some, pairs, part.blocks, self._steps)
                best[here] = np.maximum(best[here], found)
        return best


@dataclass(frozen=True)
class _Part:
    """Stretches that move on along the same dimensions, and the blocks that have them."""

    dimensions: Sequence[Dimension]
    rows: Stretches
    blocks: Array
    meetings: _Meetings


def _by_loop(stretches: Stretches) -> Iterator[tuple[int, int, int, Array]]:
    """Yield how often, by what and how fast stretches move on, and which of them do so.

    Each column is numbered first: to sort columns of three takes ten times as long.
    """
    code = np.zeros(len(stretches), dtype=np.int64)
    columns = stretches.times, stretches.stride, stretches.period
    for column in columns:
        different, number = np.unique(column, return_inverse=True)
        code = code * len(different) + number
    _, first = np.unique(code, return_index=True)
    for one in first.tolist():
        times, stride, period = (int(column[one]) for column in columns)
        yield times, stride, period, np.flatnonzero(code == code[one])


class _Search:
    """Looks for the latest touch along some dimensions."""

    def __init__(self, dimensions: Sequence[Dimension], ranges: Array, life: float) -> None:
        self._ranges, self._life = ranges, life
        moving = [d for d in dimensions if d.move]
        still = [d for d in dimensions if not d.move and d.ids]
        self._loop = next((d for d in dimensions if not d.move and not d.ids), None)
        self._free = _merged(still)
        others = [] if self._free is None or self._free.extent == _product(still) else still
        self._solved = self._chosen(moving)
        self._through = [
            *(d for d in moving if d is not self._solved),
            *(d for d in others if d is not self._free),
        ]
        self.combinations = _product(self._through)

    def places(self, pairs: int) -> int:
        """Return how many candidates are looked at for so many pairs, about."""
        return self.combinations * pairs

    def _chosen(self, moving: Sequence[Dimension]) -> Dimension | None:
        """Return the dimension that is solved for: the longest."""
        return max(moving, key=lambda d: d.extent, default=None)

    def run(
        self, stretches: Stretches, wanted: Wanted, pairs: Pairs, blocks: Array, steps: int
    ) -> Array:
        """Return the latest touch of each that is wanted, by those stretches it is paired with."""
        best = np.full(len(wanted), NEVER)
        found = self._candidates(stretches, wanted, pairs, blocks, steps)
        for number, time, block in self._placed(found, wanted):
            inside = _within(block, self._ranges) & (time < wanted.time[number] - _SOON)
            if wanted.sms:
                inside &= (block - wanted.block[number]) % wanted.sms == 0
            np.maximum.at(best, number[inside], time[inside])
        return best

    def _candidates(
        self, stretches: Stretches, wanted: Wanted, pairs: Pairs, blocks: Array, steps: int
    ) -> Candidates:
        shift, ids, later = self._combinations()
        low, high = _apart(stretches, wanted, pairs)
        low, high = low[:, None] - shift, high[:, None] - shift
        if self._solved is not None:
            low, high = _window(self._solved, low, high)
            inside = low <= high
        else:
            inside = (low <= 0) & (high >= 0)
        which, through = np.nonzero(inside)
        number, row = (one[which] for one in pairs)
        return Candidates(
            number,
            stretches.time[row] / steps + later[through],
            blocks[row] + ids[through],
            low[inside],
            high[inside],
        )

    def _combinations(self) -> tuple[Array, Array, Array]:
        """Return what all places along the dimensions that are gone through come to."""
        extents = [d.extent for d in self._through]
        places = np.indices(extents).reshape(len(extents), self.combinations).T
        return (
            places @ np.array([d.move for d in self._through], dtype=np.int64),
            places @ np.array([d.ids for d in self._through], dtype=np.int64),
            places @ np.array([0.0 if d.ids else d.later for d in self._through]),
        )

    def _placed(self, found: Candidates, wanted: Wanted) -> Iterator[tuple[Array, Array, Array]]:
        """Yield places as they may be the latest: which, when and by which block."""
        solved = self._solved
        for at in self._moved(found, wanted):
            number, time, block = at.number, at.time, at.block
            if solved is not None:
                time = time + at.high * (0.0 if solved.ids else solved.later)
                block = block + at.high * solved.ids
            if self._free is not None:
                room = (wanted.time[number] - _SOON - time) / self._life if self._life else None
                block = block + self._latest_free(block, room, wanted, number)
            time = time + block * self._life
            if self._loop is not None:
                left = (wanted.time[number] - _SOON - time) / self._loop.later
                time = time + self._loop.later * np.clip(np.floor(left), 0, self._loop.extent - 1)
            yield number, time, block

    def _moved(self, found: Candidates, wanted: Wanted) -> Iterator[Candidates]:
        """Yield candidates at the places along the solved dimension that come into question."""
        solved = self._solved
        if solved is None:
            yield found
            return
        later = solved.later if not solved.ids else solved.ids * self._life
        start = found.time + found.block * self._life
        if later > 0 and (self._free is None or not solved.ids):
            room = np.floor((wanted.time[found.number] - _SOON - start) / later)
            high = np.minimum(found.high, room).astype(np.int64)
            found = Candidates(found.number, found.time, found.block, found.low, high)
            found = found.at(found.high >= found.low)
        if solved.ids and wanted.sms and self._free is None:
            apart = (
                found.block + found.high * solved.ids - wanted.block[found.number]
            ) % wanted.sms
            back = _steps_back(solved.ids, wanted.sms)[apart]
            high = found.high - back
            found = Candidates(found.number, found.time, found.block, found.low, high)
            yield found.at((back >= 0) & (high >= found.low))
            return
        for back in range(FEW_MOVED if self._free is not None else 1):
            high = found.high - back
            more = Candidates(found.number, found.time, found.block, found.low, high)
            yield more.at(high >= found.low)

    def _latest_free(
        self, block: Array, room: Array | None, wanted: Wanted, number: Array
    ) -> Array:
        """Return by how many ids the latest block lies further along the free dimension."""
        free = self._free
        assert free is not None
        most = np.full(len(block), free.extent - 1)
        if room is not None:
            most = np.minimum(most, np.floor((room - block) / free.ids)).astype(np.int64)
        for _ in range(FEW_MOVED):
            most = self._inside(block, most, free.ids)
            if wanted.sms:
                apart = (block + most * free.ids - wanted.block[number]) % wanted.sms
                back = _steps_back(free.ids, wanted.sms)[apart]
                most = np.where(back >= 0, most - back, -1)
        return np.where(most >= 0, most * free.ids, 1 << 60)

    def _inside(self, block: Array, most: Array, ids: int) -> Array:
        """Return how often `ids` fit between a block and the last range begun by so many of them.

        That block is within the range, or lies before it where the range is shorter than `ids`.
        """
        row = np.searchsorted(self._ranges[:, 0], block + most * ids, side="right") - 1
        last = np.where(row >= 0, self._ranges[np.maximum(row, 0), 1], -1)
        return np.asarray(np.minimum(most, (last - block) // ids))


class _Windows(_Search):
    """Goes through places from the dimension with the longest moves to that with the shortest.

    Of each only those places count from which shorter moves can lead to what is wanted, and the
    shortest is solved for. They are few where moves do not overlap, as rows of a picture do not.
    """

    def _chosen(self, moving: Sequence[Dimension]) -> Dimension | None:
        return min(moving, key=lambda d: abs(d.move), default=None)

    def places(self, pairs: int) -> int:
        """Return how many candidates are looked at for so many pairs, about."""
        return FEW_PLACES * pairs

    def _candidates(
        self, stretches: Stretches, wanted: Wanted, pairs: Pairs, blocks: Array, steps: int
    ) -> Candidates:
        number, row = pairs
        found = Candidates(
            number, stretches.time[row] / steps, blocks[row], *_apart(stretches, wanted, pairs)
        )
        left = sorted(self._through, key=lambda d: -abs(d.move))
        last = [] if self._solved is None else [self._solved]
        while left:
            dimension = left.pop(0)
            found = _placed_along(dimension, found, *_reach([*left, *last]))
        if self._solved is None:
            return found.at((found.low <= 0) & (found.high >= 0))
        low, high = _window(self._solved, found.low, found.high)
        found = Candidates(found.number, found.time, found.block, low, high)
        return found.at(low <= high)


def _placed_along(dimension: Dimension, found: Candidates, least: int, most: int) -> Candidates:
    """Return candidates at each place along a dimension from which others lead on.

    These move on by at least and at most so many bytes in all. Of too many, the last ones count.
    """
    first, last = _window(dimension, found.low - most, found.high - least)
    most_of_each = max(1, MOST_EXPANDED // max(1, len(first)))
    first = np.maximum(first, last - most_of_each + 1)
    counts = np.maximum(last - first + 1, 0)
    which = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    at = found.at(which)
    return Candidates(
        at.number,
        at.time + place * (0.0 if dimension.ids else dimension.later),
        at.block + place * dimension.ids,
        at.low - place * dimension.move,
        at.high - place * dimension.move,
    )


def _window(dimension: Dimension, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the first and last place along a dimension that lie between so many bytes."""
    end = dimension.extent - 1
    if not dimension.move:
        return np.where((low <= 0) & (high >= 0), 0, 1), np.where(low <= 0, end, 0)
    low, high = (low, high) if dimension.move > 0 else (-high, -low)
    size = abs(dimension.move)
    return np.maximum(-(-low // size), 0), np.minimum(high // size, end)


def _reach(dimensions: Sequence[Dimension]) -> tuple[int, int]:
    """Return by how many bytes places along dimensions are apart from the first: from, up to."""
    ends = [dimension.move * (dimension.extent - 1) for dimension in dimensions]
    return sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)


def _apart(stretches: Stretches, wanted: Wanted, pairs: Pairs) -> tuple[Array, Array]:
    """Return from where up to where stretches may be moved on to cover some of what is wanted."""
    number, row = pairs
    low = wanted.begin[number] - stretches.end[row] + 1
    return low, wanted.end[number] - 1 - stretches.begin[row]


def _circle(moving: Sequence[Dimension], length: float) -> tuple[int, int, int]:
    """Return the bytes of a circle, and from where up to where stretches are moved along it.

    All but the shortest moves lead round it: so many that stretches of a length take up the least.
    """
    ordered = sorted(moving, key=lambda d: abs(d.move))
    circles = [(FAR, 0, 0)]
    for k in range(len(ordered)):
        around = math.gcd(*(d.move for d in ordered[k:]))
        circles.append((around, *_reach(ordered[:k])))
    return min(circles[1:] or circles, key=lambda c: (c[2] - c[1] + length) / c[0])


class _Meetings:
    """Which stretches may cover some of what is wanted, wherever in their dimensions these are.

    The longest moves are multiples of `around` bytes: a stretch only comes to what lies near it on
    a circle of so many, as far as the other moves lead. Stretches of about one length are looked
    through together: of those that begin near enough at least every second one covers it.
    """

    def __init__(self, stretches: Stretches, moving: Sequence[Dimension]) -> None:
        length = stretches.end - stretches.begin
        self._around, least, most = _circle(moving, float(length.mean()) if len(length) else 0.0)
        self._begin, self._length = stretches.begin + least, length + most - least
        self._parts = [self._part(rows) for rows in _by_length(stretches)]

    def _part(self, rows: Array) -> tuple[Array, Array, int]:
        """Return stretches by where on the circle they begin, that three times round, and more.

        That is how far behind their beginnings they reach.
        """
        place = self._begin[rows] % self._around
        order = np.argsort(place, kind="stable")
        rounds = self._around * np.arange(3)[:, None]
        return rows[order], (place[order] + rounds).ravel(), int(self._length[rows].max()) - 1

    def near(self, wanted: Wanted) -> list[tuple[Array, Array]]:
        """Return, part by part, the first stretch that may reach what is wanted, and how many."""
        return [self._near(part, wanted) for part in self._parts]

    def pairs(self, wanted: Wanted, near: Sequence[tuple[Array, Array]], here: slice) -> Pairs:
        """Return what is wanted and the stretches that may cover some of it, pair by pair.

        Those `near` it are known `here`, where it stands among more.
        """
        found = [
            self._pairs_of(part[0], wanted, first[here], counts[here])
            for part, (first, counts) in zip(self._parts, near, strict=True)
        ]
        none = np.zeros(0, dtype=np.int64)
        numbers, rows = zip((none, none), *found, strict=True)
        return np.concatenate(numbers), np.concatenate(rows)

    def _pairs_of(self, rows: Array, wanted: Wanted, first: Array, counts: Array) -> Pairs:
        number = np.repeat(np.arange(len(wanted)), counts)
        place = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        row = rows[place % len(rows)]
        behind = (self._begin[row] - wanted.begin[number]) % self._around
        size = wanted.end[number] - wanted.begin[number]
        covers = (behind < size) | (behind + self._length[row] > self._around)
        return number[covers], row[covers]

    def _near(self, part: tuple[Array, Array, int], wanted: Wanted) -> tuple[Array, Array]:
        rows, places, reach = part
        begin = wanted.begin % self._around + self._around
        first = np.searchsorted(places, begin - min(reach, self._around))
        end = np.searchsorted(places, begin + (wanted.end - wanted.begin))
        return first, np.minimum(end - first, len(rows))


def _by_length(stretches: Stretches) -> list[Array]:
    """Return which stretches have about one length, to a factor of two, by where they begin."""
    powers = np.frexp(stretches.end - stretches.begin)[1]
    order = np.argsort(stretches.begin, kind="stable")
    return [order[powers[order] == power] for power in np.unique(powers).tolist()]


def _merged(still: Sequence[Dimension]) -> Dimension | None:
    """Return the dimensions of the grid along which nothing moves as one, if they follow.

    Else the longest of them.
    """
    if not still:
        return None
    ordered = sorted(still, key=lambda d: d.ids)
    follow = all(b.ids == a.ids * a.extent for a, b in pairwise(ordered))
    if follow:
        return Dimension(0, _product(still), ordered[0].ids, ordered[0].later)
    return max(still, key=lambda d: d.extent)


def _product(dimensions: Sequence[Dimension]) -> int:
    return math.prod(d.extent for d in dimensions)


def _steps_back(ids: int, sms: int) -> Array:
    """Return how many steps of so many ids make up for each distance of SMs, -1 where none do."""
    table = np.full(sms, -1, dtype=np.int64)
    for steps in range(sms - 1, -1, -1):
        table[steps * ids % sms] = steps
    return table


def _within(numbers: Array, ranges: Array) -> Array:
    """Return which numbers lie in ranges (first, last), which are in order."""
    at = np.searchsorted(ranges[:, 0], numbers, side="right") - 1
    return np.asarray((at >= 0) & (numbers <= ranges[np.maximum(at, 0), 1]))
