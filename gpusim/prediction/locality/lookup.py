"""Time of the last touch of given bytes, solved for in patterns of any number of blocks.

A stretch lies `move` bytes further for each step along a dimension: a dimension of the grid, or the
iterations of its loop. Of the dimensions with a move, one is solved for and the others are
enumerated; along a dimension without a move, the latest admissible step is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.prediction.arithmetic.grouping import groups, numbers
from gpusim.prediction.locality.standing import Places, Standing
from gpusim.prediction.locality.wanted import NEVER, SOON, Pairs, Wanted, within
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

MOST_CANDIDATES = 1 << 21  # per NumPy call
MOST_PLACES = 1 << 22  # of one group of stretches; above it, places are enumerated by windows
FEW_PLACES = 4  # of a stretch that can cover wanted bytes, about
MOST_EXPANDED = 1 << 23  # of these, per NumPy call
FEW_MOVED = 4  # overlapping places of a stretch tried beside a free dimension
FAR = 1 << 60  # a modulus larger than the distance of any two addresses


@dataclass(frozen=True)
class Dimension:
    """`extent` steps of a stretch, `move` bytes apart: of a loop, `later` in time, or of a grid.

    A grid's are block `ids` apart, which begin at the times of a schedule.
    """

    move: int
    extent: int
    ids: int
    later: float = 0.0


@dataclass(frozen=True)
class Candidates:
    """Placements of stretches over wanted bytes: index of the query, `time` and `block`.

    Along the solved dimension the stretch covers the bytes from step `low` to `high`.
    """

    number: Array
    time: Array
    block: Array
    low: Array
    high: Array

    def at(self, which: Any) -> Candidates:
        """Return some of the rows."""
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
    """Return when wanted bytes were last touched by stretches, NEVER if untouched."""
    are_sectors = not ((wanted.begin | wanted.end) % SECTOR_BYTES).any()
    grain = SECTOR_BYTES if are_sectors else 1
    return LookedThrough(stretches, grid, blocks, ranges, grain).latest(wanted, life)


class LookedThrough:
    """An index of stretches for repeated queries.

    `grid` holds the dimensions of the grid; `blocks` is, by stretch, the block number at the grid's
    origin. Only blocks within `ranges` count. Wanted bytes are whole multiples of `grain` bytes.
    """

    def __init__(
        self,
        stretches: Stretches,
        grid: Sequence[Dimension],
        blocks: Array,
        ranges: Array,
        grain: int = 1,
    ) -> None:
        self._steps, self._ranges, self._grain = max(1, stretches.steps), ranges, grain
        self._standing: dict[tuple[int, float], Standing] = {}  # by part and life
        along = [d for d in grid if d.extent > 1]
        self._parts = [
            self._part(along, (times, stride, period), stretches.at(mine), blocks[mine])
            for times, stride, period, mine in _by_loop(stretches)
        ]

    def _part(
        self, along: Sequence[Dimension], loop: tuple[int, int, int], rows: Stretches, blocks: Array
    ) -> _Part:
        times, stride, period = loop
        turns = [Dimension(stride, times + 1, 0, period / self._steps)] if times else []
        dimensions = [*along, *turns]
        places = None if dimensions else Places(rows, blocks, self._grain)
        if places is not None:
            rows, blocks = places.rows, places.blocks
        meetings = _Meetings(rows, [d for d in dimensions if d.move])
        return _Part(dimensions, rows, blocks, meetings, places)

    def latest(self, wanted: Wanted, life: float) -> Array:
        """Return when wanted bytes were last touched, NEVER if untouched.

        Times are in block durations; each block begins `life` after the one before.
        """
        best = np.full(len(wanted), NEVER)
        for part in self._parts:
            search = self._search(part, wanted, life)
            near = part.meetings.near(wanted)
            places = search.places(sum(int(counts.sum()) for _, counts in near))
            size = max(1, MOST_CANDIDATES * len(wanted) // max(1, places))
            for start in range(0, len(wanted), size):
                here = slice(start, start + size)
                some, pairs = wanted.at(here), part.meetings.pairs(wanted.at(here), near, here)
                found = search.run(part.rows, some, pairs, part.blocks, self._steps)
                best[here] = np.maximum(best[here], found)
        return best

    def _search(self, part: _Part, wanted: Wanted, life: float) -> _Search | Standing:
        if part.places is not None:
            key = id(part), life
            if key not in self._standing:
                self._standing[key] = Standing(part.places, self._ranges, life, self._steps)
            return self._standing[key]
        search = _Search(part.dimensions, self._ranges, life)
        if search.combinations * len(part.rows) * len(wanted) // wanted.queries > MOST_PLACES:
            search = _Windows(part.dimensions, self._ranges, life)
        return search


@dataclass(frozen=True)
class _Part:
    """Stretches with the same dimensions, and their blocks; without any, one for each place."""

    dimensions: Sequence[Dimension]
    rows: Stretches
    blocks: Array
    meetings: _Meetings
    places: Places | None


def _by_loop(stretches: Stretches) -> Iterator[tuple[int, int, int, Array | slice]]:
    """Yield repeat count, stride and period of loops, and the stretches of each."""
    columns = stretches.times, stretches.stride, stretches.period
    different, number = groups(*columns)
    for group, one in enumerate(different.tolist()):
        times, stride, period = (int(column[one]) for column in columns)
        mine = np.flatnonzero(number == group) if len(different) > 1 else slice(None)
        yield times, stride, period, mine


class _Search:
    """Searches for the latest touch along some dimensions."""

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
        """Return the approximate number of candidates for a number of pairs."""
        return self.combinations * pairs

    def _chosen(self, moving: Sequence[Dimension]) -> Dimension | None:
        """Return the dimension to solve for: the longest."""
        return max(moving, key=lambda d: d.extent, default=None)

    def run(
        self, stretches: Stretches, wanted: Wanted, pairs: Pairs, blocks: Array, steps: int
    ) -> Array:
        """Return the latest touch for each query, by the stretches paired with it."""
        best = np.full(len(wanted), NEVER)
        found = self._candidates(stretches, wanted, pairs, blocks, steps)
        for number, time, block in self._placed(found, wanted):
            inside = within(block, self._ranges) & (time < wanted.time[number] - SOON)
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
        """Return bytes, block ids and time of all combinations of enumerated steps."""
        extents = [d.extent for d in self._through]
        places = np.indices(extents).reshape(len(extents), self.combinations).T
        return (
            places @ np.array([d.move for d in self._through], dtype=np.int64),
            places @ np.array([d.ids for d in self._through], dtype=np.int64),
            places @ np.array([d.later for d in self._through]),
        )

    def _placed(self, found: Candidates, wanted: Wanted) -> Iterator[tuple[Array, Array, Array]]:
        """Yield index, time and block of placements, among them the latest."""
        solved = self._solved
        for at in self._moved(found, wanted):
            number, time, block = at.number, at.time, at.block
            if solved is not None:
                time = time + at.high * solved.later
                block = block + at.high * solved.ids
            if self._free is not None:
                room = (wanted.time[number] - SOON - time) / self._life if self._life else None
                block = block + self._latest_free(block, room, wanted, number)
            time = time + block * self._life
            if self._loop is not None:
                left = (wanted.time[number] - SOON - time) / self._loop.later
                time = time + self._loop.later * np.clip(np.floor(left), 0, self._loop.extent - 1)
            yield number, time, block

    def _moved(self, found: Candidates, wanted: Wanted) -> Iterator[Candidates]:
        """Yield candidates at admissible steps along the solved dimension."""
        solved = self._solved
        if solved is None:
            yield found
            return
        later = solved.later if not solved.ids else solved.ids * self._life
        start = found.time + found.block * self._life
        if later > 0 and (self._free is None or not solved.ids):
            room = np.floor((wanted.time[found.number] - SOON - start) / later)
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
        """Return the block ids to the latest admissible block along the free dimension."""
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
        """Return the number of steps of `ids` from a block to the last range begun within them.

        The step ends within the range, or before it if the range is shorter than `ids`.
        """
        row = np.searchsorted(self._ranges[:, 0], block + most * ids, side="right") - 1
        last = np.where(row >= 0, self._ranges[np.maximum(row, 0), 1], -1)
        return np.asarray(np.minimum(most, (last - block) // ids))


class _Windows(_Search):
    """Enumerates steps from the dimension with the longest moves to the shortest.

    Each step is kept only within the reach of the shorter moves, and the shortest is solved for.
    Few remain where moves do not overlap, such as the rows of a picture.
    """

    def _chosen(self, moving: Sequence[Dimension]) -> Dimension | None:
        return min(moving, key=lambda d: abs(d.move), default=None)

    def places(self, pairs: int) -> int:
        """Return the approximate number of candidates for a number of pairs."""
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
    """Return candidates at each step along a dimension within reach of the remaining ones.

    These move by `least` to `most` bytes in all. Beyond the limit only the last steps are kept.
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
        at.time + place * dimension.later,
        at.block + place * dimension.ids,
        at.low - place * dimension.move,
        at.high - place * dimension.move,
    )


def _window(dimension: Dimension, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the first and last step along a dimension with a move between `low` and `high`."""
    end = dimension.extent - 1
    if not dimension.move:
        return np.where((low <= 0) & (high >= 0), 0, 1), np.where(low <= 0, end, 0)
    low, high = (low, high) if dimension.move > 0 else (-high, -low)
    size = abs(dimension.move)
    return np.maximum(-(-low // size), 0), np.minimum(high // size, end)


def _reach(dimensions: Sequence[Dimension]) -> tuple[int, int]:
    """Return the least and the greatest move along dimensions, in bytes."""
    ends = [dimension.move * (dimension.extent - 1) for dimension in dimensions]
    return sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)


def _apart(stretches: Stretches, wanted: Wanted, pairs: Pairs) -> tuple[Array, Array]:
    """Return the range of moves by which stretches cover some of the wanted bytes."""
    number, row = pairs
    low = wanted.begin[number] - stretches.end[row] + 1
    return low, wanted.end[number] - 1 - stretches.begin[row]


def _circle(moving: Sequence[Dimension], stretches: Stretches) -> tuple[int, int, int]:
    """Return a modulus in bytes, and the least and greatest move modulo it.

    The modulus divides all but the shortest moves, or is larger than any address: chosen so that
    stretches and a wanted line cover the least part of it, or of all bytes from the first stretch
    to the last.
    """
    ordered = sorted(moving, key=lambda d: abs(d.move))
    circles = [(FAR, *_reach(ordered))]
    for k in range(len(ordered)):
        around = math.gcd(*(d.move for d in ordered[k:]))
        circles.append((around, *_reach(ordered[:k])))
    if not len(stretches):
        return circles[0]
    length = float((stretches.end - stretches.begin).mean())
    apart = int(np.ptp(stretches.begin)) + length

    def part(circle: tuple[int, int, int]) -> float:
        around, least, most = circle
        return (most - least + length + LINE_BYTES) / min(around, apart + most - least)

    return min(circles, key=part)


class _Meetings:
    """An index of stretches by address modulo the longest moves, at any step of the dimensions.

    The longest moves are multiples of `around` bytes, so that a stretch reaches only addresses near
    its own modulo `around`, within the reach of the other moves. Stretches of similar length are
    searched together: of those that begin near enough, at least every second one overlaps.
    """

    def __init__(self, stretches: Stretches, moving: Sequence[Dimension]) -> None:
        self._around, least, most = _circle(moving, stretches)
        self._begin = stretches.begin + least
        self._length = stretches.end - stretches.begin + most - least
        self._parts = [self._part(rows) for rows in _by_length(stretches)]

    def _part(self, rows: Array) -> tuple[Array, Array, int]:
        """Return stretches sorted by their beginning modulo `around`, and these beginnings.

        Both are repeated for three rounds, where there is a modulus; last comes the greatest
        length, less one.
        """
        place = self._place(self._begin[rows])
        order = np.argsort(place, kind="stable")
        rounds = np.arange(-1, 2) if self._around < FAR else np.zeros(1, dtype=np.int64)
        places = (place[order] + self._around * rounds[:, None]).ravel()
        return np.tile(rows[order], len(rounds)), places, int(self._length[rows].max()) - 1

    def _place(self, address: Array) -> Array:
        return address % self._around if self._around < FAR else address

    def near(self, wanted: Wanted) -> list[tuple[Array, Array]]:
        """Return, by part, the first stretch near each query and the number of near ones."""
        return [self._near(part, wanted) for part in self._parts]

    def pairs(self, wanted: Wanted, near: Sequence[tuple[Array, Array]], here: slice) -> Pairs:
        """Return pairs of queries and overlapping stretches.

        `near` is known for more queries; these stand at the slice `here` of them.
        """
        found = [
            self._pairs_of(part, wanted, first[here], counts[here])
            for part, (first, counts) in zip(self._parts, near, strict=True)
        ]
        none = np.zeros(0, dtype=np.int64)
        numbers, rows = zip((none, none), *found, strict=True)
        return np.concatenate(numbers), np.concatenate(rows)

    def _pairs_of(
        self, part: tuple[Array, Array, int], wanted: Wanted, first: Array, counts: Array
    ) -> Pairs:
        rows, places, reach = part
        number = np.repeat(np.arange(len(wanted)), counts)
        place = np.arange(len(number)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        row = rows[place]
        # From the wanted bytes to the stretch: at most a round back.
        apart = places[place] - self._place(wanted.begin)[number]
        covers = apart + self._length[row] > 0
        size = wanted.end - wanted.begin
        if reach + int(size.max(initial=0)) > self._around:  # it may reach them in the next round
            covers |= apart + self._around < size[number]
        return number[covers], row[covers]

    def _near(self, part: tuple[Array, Array, int], wanted: Wanted) -> tuple[Array, Array]:
        rows, places, reach = part
        begin = self._place(wanted.begin)
        first = np.searchsorted(places, begin - min(reach, self._around))
        end = np.searchsorted(places, begin + (wanted.end - wanted.begin))
        return first, np.minimum(end - first, len(rows) // 3 if self._around < FAR else len(rows))


def _by_length(stretches: Stretches) -> list[Array]:
    """Return groups of stretches with lengths within a factor of two, in order of address."""
    powers = np.frexp(stretches.end - stretches.begin)[1]
    order = np.argsort(stretches.begin, kind="stable")
    return [order[powers[order] == power] for power in numbers(powers)]


def _merged(still: Sequence[Dimension]) -> Dimension | None:
    """Return the grid's dimensions without a move as one, if their ids are contiguous.

    Else the longest of them.
    """
    if not still:
        return None
    ordered = sorted(still, key=lambda d: d.ids)
    follow = all(b.ids == a.ids * a.extent for a, b in pairwise(ordered))
    if follow:
        return Dimension(0, _product(still), ordered[0].ids)
    return max(still, key=lambda d: d.extent)


def _product(dimensions: Sequence[Dimension]) -> int:
    return math.prod(d.extent for d in dimensions)


def _steps_back(ids: int, sms: int) -> Array:
    """Return the steps back to the same SM, by distance modulo SMs; -1 if unreachable."""
    table = np.full(sms, -1, dtype=np.int64)
    for steps in range(sms - 1, -1, -1):
        table[steps * ids % sms] = steps
    return table
