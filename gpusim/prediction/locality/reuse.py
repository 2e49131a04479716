"""Reuse times of a launch's accesses: since the last touch by the block, the SM or any block.

A weighted sample of each instruction's touches stands for all. The unit of time is the duration of
a block: of n resident blocks, each begins 1/n after the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from gpusim.gpu.memory import LINE_BYTES, SECTOR_BYTES
from gpusim.launch.grid import Launch
from gpusim.prediction.arithmetic.grouping import numbers
from gpusim.prediction.locality.lookup import Dimension, LookedThrough, latest
from gpusim.prediction.locality.patterns import (
    KEPT_LAUNCHES,
    Pattern,
    Patterns,
    coordinates,
    united,
)
from gpusim.prediction.locality.pieces import Pieces
from gpusim.prediction.locality.random_access import (
    MANY,
    Asked,
    Rates,
    by_random_access,
    least_rates,
    rates,
)
from gpusim.prediction.locality.sample import BY_DATA, DRAWS, Sample, sampled, with_draws
from gpusim.prediction.locality.schedule import Schedule
from gpusim.prediction.locality.table import joined
from gpusim.prediction.locality.wanted import NEVER, Wanted, are_among
from gpusim.prediction.streams.kinds_by_pc import ATOMIC, FENCE, PAST_L1, STORE
from gpusim.prediction.streams.local_rows import EVERYWHERE, are_rows
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array

Last = Callable[[Wanted, float], Array]

NOW = 1e-6  # block durations within which a touch is the same
A_LIFE = 1.0  # the duration of a block, the unit of time
SOON = 0.1  # block durations within which adjacent lines come to DRAM together


@dataclass(frozen=True)
class Touches(Sample):
    """A sample of touched sectors with their reuse times, infinite without an earlier touch.

    All times are in block durations; `time` is since the launch began. Since the last touch:
    `own` of the sector by the block itself, `on_sm` of the sector by a load or store of the SM,
    `line` of its line by the SM, `gap` of its DRAM grain by any block, `by_line` of its line by any
    block, `settled` of the grain by a touch whose fetch is complete, `stored` of the sector by a
    store or atomic, `line_stored` of its line by one. Until the end of the launch: `after_all`
    from the line's last touch, `after_own` from the last touch by the SM that has the block in
    the next launch, `after_grain` from the grain's.
    `is_late` means no earlier touch of the grain among the blocks of a wave, `in_line` a touch
    of the neighbouring grain in the line about the same time, `near` the fraction of the two
    adjacent lines touched about the same time. It `is_filled` if the sector is touched again, or
    the launch ends, before the L2 evicts a partially stored sector. It `is_random` at
    data-dependent addresses.
    """

    time: Array
    own: Array
    on_sm: Array
    line: Array
    gap: Array
    by_line: Array
    settled: Array
    stored: Array
    line_stored: Array
    after_all: Array
    after_own: Array
    after_grain: Array
    is_late: Array
    near: Array
    in_line: Array
    is_filled: Array
    is_random: Array

    def __len__(self) -> int:
        return len(self.pc)


def touches_of(patterns: Patterns, schedule: Schedule) -> Touches:
    """Return a sample of a launch's touches with their reuse times."""
    parts = [_of_linear(patterns, schedule)]
    if patterns.single:
        parts.append(_of_single(patterns, schedule))
    return _joined(parts)


def _joined(parts: list[Touches]) -> Touches:
    names = Touches.__dataclass_fields__
    columns = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
    return Touches(**columns)


def _of_linear(patterns: Patterns, schedule: Schedule) -> Touches:
    sample, own, last = _kept_linear(patterns.linear, schedule.launch, schedule.grain_bytes)
    return _with_gaps(sample, schedule, last, own)


@lru_cache(maxsize=KEPT_LAUNCHES)
def _kept_linear(
    linear: tuple[Pattern, ...], launch: Launch, grain_bytes: int
) -> tuple[Sample, Array, Last]:
    """Return what holds for all GPUs: a sample, its blocks' own last touches, and all others."""
    sample = sampled(linear, launch, grain_bytes)
    together = united(linear)
    own = _last_own(together, sample, launch)
    return sample, own, _last_linear(together, launch)


def _last_linear(patterns: Sequence[Pattern], launch: Launch) -> Last:
    """Return the function for the last touch of bytes by linear patterns.

    Those of single blocks are looked through together.
    """
    whole: list[tuple[Stretches, Sequence[Dimension], Array, Array]] = [
        (p.stretches, _grid(p, launch), np.zeros(len(p.stretches), int), np.array(p.ranges))
        for p in patterns
        if p.blocks > 1
    ]
    alone = [p for p in patterns if p.blocks == 1]
    if alone:
        whole.append((*_in_one_table(alone, launch), np.array([(0, launch.blocks)])))
    return _last_of(whole)


def _in_one_table(
    alone: Sequence[Pattern], launch: Launch
) -> tuple[Stretches, Sequence[Dimension], Array]:
    """Return the stretches of single blocks where these touch them, no moves, and the blocks."""
    blocks = np.array([pattern.ranges[0][0] for pattern in alone])
    moved = [
        int(place @ np.array(pattern.moves))
        for place, pattern in zip(coordinates(blocks, launch), alone, strict=True)
    ]
    rows = [
        replace(p.stretches, begin=p.stretches.begin + by, end=p.stretches.end + by)
        for p, by in zip(alone, moved, strict=True)
    ]
    return joined(rows), (), np.repeat(blocks, [*map(len, rows)])


def _last_of(whole: Sequence[tuple[Stretches, Sequence[Dimension], Array, Array]]) -> Last:
    """Return the function for the last touch, from stretches, grid, their blocks and ranges.

    Queries repeat with few combinations of kinds: each gets an index of its own, all that request
    all stretches the same.
    """

    @cache
    def of_all(number: int) -> LookedThrough:
        rows, grid, blocks, ranges = whole[number]
        return LookedThrough(rows, grid, blocks, ranges, SECTOR_BYTES)

    @cache
    def among(kinds: tuple[int, ...], is_of_sm: bool) -> list[LookedThrough]:
        found = []
        for number, (rows, grid, blocks, ranges) in enumerate(whole):
            some = are_among(rows.kind, kinds, is_of_sm=is_of_sm)
            if some.all() and len(some):
                found.append(of_all(number))
            elif some.any():
                looked = LookedThrough(rows.at(some), grid, blocks[some], ranges, SECTOR_BYTES)
                found.append(looked)
        return found

    def last(wanted: Wanted, life: float) -> Array:
        best = np.full(len(wanted), NEVER)
        for one in among(wanted.kinds, wanted.sms > 0):
            best = np.maximum(best, one.latest(wanted, life))
        return best

    return last


def _grid(pattern: Pattern, launch: Launch) -> list[Dimension]:
    x, y, z = launch.grid
    extents = ((x, 1), (y, x), (z, x * y))
    return [
        Dimension(move, extent, ids)
        for move, (extent, ids) in zip(pattern.moves, extents, strict=True)
    ]


def _of_single(patterns: Patterns, schedule: Schedule) -> Touches:
    """Return touches at data-dependent addresses, extrapolated from the executed blocks.

    Adjacent blocks give the sharing between neighbours. Beyond these, the fraction of blocks in the
    spread sample that touch a sector gives its touch rate. If no neighbour makes such an access,
    the executed blocks that do stand for all.
    """
    single, launch = patterns.single, schedule.launch
    near = patterns.neighbours
    pattern = {b: Pattern(one, (0, 0, 0), ((b, b),)) for b, one in single.items()}
    later = [b for b in near[len(near) // 2 :] if len(single[b])]
    later = later or [b for b, one in single.items() if len(one)]
    blocks_apart = len(patterns.spread)
    totals = np.zeros(1 + max(int(one.pc.max(initial=0)) for one in single.values()))
    for b in patterns.spread:
        totals += _counts(single[b], len(totals)) * launch.blocks / blocks_apart
    sample = sampled(tuple(pattern[b] for b in later), launch, schedule.grain_bytes, BY_DATA)
    counted = np.zeros_like(totals)
    for pc in numbers(sample.pc):
        counted[pc] = sample.weight[sample.pc == pc].sum()
    scale = totals[sample.pc] / counted[sample.pc]
    sample = replace(sample, weight=sample.weight * scale)
    timed = united(patterns.timed)
    own = _last_own((*timed, *(pattern[b] for b in later)), sample, launch)
    last_linear = _last_linear(timed, launch)
    sample, own = with_draws(sample), np.repeat(own, DRAWS)
    everyone, owner = _side_by_side(single, near)

    is_counted = np.isin(sample.block, patterns.spread)
    touches = totals[sample.pc] / launch.blocks

    @cache
    def beside(size: int) -> Pieces:
        return patterns.pieces_of_neighbours.of_size(size)

    @cache
    def rate(size: int) -> Rates:
        spread = patterns.pieces.of_size(size)
        least = least_rates(spread, beside(size), sample.pc, launch.blocks)
        asked = Asked(sample.pc, sample.begin // size, is_counted, touches)
        return rates(spread, asked, least)

    last_near = _last_of([(everyone, (), owner, np.array([(0, launch.blocks)]))])

    def of_neighbours(wanted: Wanted, life: float) -> Array:
        some, times = _once(wanted)
        return np.repeat(np.maximum(last_near(some, life), last_linear(some, life)), times)

    def last(wanted: Wanted, life: float) -> Array:
        found = of_neighbours(wanted, life)
        if wanted.sms and wanted.kinds:
            return found
        size = int(wanted.end[0] - wanted.begin[0])
        chance = by_random_access(rate(size), rate(LINE_BYTES), sample, schedule, wanted, life)
        if not life:  # for a frequently touched sector, neighbours tell the time within a wave
            are_told = beside(size).touching(wanted.begin // size) > MANY
            chance = np.where(are_told, NEVER, chance)
        return np.maximum(found, chance)

    return _with_gaps(sample, schedule, last, own, of_neighbours)


def _once(wanted: Wanted) -> tuple[Wanted, int]:
    """Return the queries once per touch and their multiplicity, if all draws agree."""
    times = wanted.time.reshape(-1, DRAWS)
    if (times == times[:, :1]).all():
        return wanted.at(slice(None, None, DRAWS)), DRAWS
    return wanted, 1


def _counts(rows: Stretches, pcs: int) -> Array:
    """Return the number of touches by each of the first `pcs` instructions."""
    return np.bincount(rows.pc, rows.sectors * (1 + rows.times), minlength=pcs)


def _side_by_side(
    single: Mapping[int, Stretches], near: tuple[int, ...]
) -> tuple[Stretches, Array]:
    """Return the stretches of some blocks in one table, and the block of each."""
    rows = [single[b] for b in near]
    return joined(rows), np.repeat(near, [*map(len, rows)])


def _last_own(patterns: Sequence[Pattern], sample: Sample, launch: Launch) -> Array:
    """Return the last touch of each sector by the same block, as a time within the block."""
    best = np.full(len(sample.pc), NEVER)
    places = coordinates(sample.block, launch)
    for pattern in patterns:
        table = np.array(pattern.ranges)
        at = np.searchsorted(table[:, 0], sample.block, side="right") - 1
        mine = (at >= 0) & (sample.block <= table[np.maximum(at, 0), 1])
        if not mine.any():
            continue
        begin = sample.begin[mine] - places[mine] @ np.array(pattern.moves)
        wanted = Wanted(begin, begin + SECTOR_BYTES, sample.place[mine], sample.block[mine])
        rows = pattern.stretches
        blocks = np.zeros(len(rows), dtype=np.int64)
        found = latest(rows, (), wanted, blocks, np.array([(0, 0)]), 0.0)
        best[mine] = np.maximum(best[mine], found)
    return best


class _Lookup:
    """Queries about the bytes around those of a sample, by the `last` touches of an SM or all."""

    def __init__(self, sample: Sample, schedule: Schedule, last: Last) -> None:
        self.time = sample.block * schedule.life + sample.place
        self._sample, self._schedule, self._last = sample, schedule, last

    def around(
        self,
        size: int,
        at: Array,
        further: int | Array = 0,
        sms: int = 0,
        kinds: tuple[int, ...] = (),
    ) -> Wanted:
        """Return the query for the sectors of `size` bytes around, moved `further`."""
        begin = self._sample.begin // size * size + further
        return Wanted(begin, begin + size, at, self._sample.block, sms, kinds)

    def lines(self, at: Array) -> Wanted:
        """Return the query for the lines on the SM."""
        return self.around(LINE_BYTES, np.maximum(at, 0.0), sms=self._schedule.sms)

    def soon(self, grain: int) -> list[Wanted]:
        """Return the queries for the other grain of a pair and for the lines on both sides."""
        time = self.time + SOON
        other = np.where(self._sample.begin // grain % 2, -grain, grain)
        lines = [self.around(LINE_BYTES, time, side) for side in (-LINE_BYTES, LINE_BYTES)]
        return [self.around(grain, time, other), *lines]

    def evicted(self) -> Array:
        """Return when the SM last evicted the lines, or invalidated its whole L1."""
        time, schedule = self.time, self._schedule
        evicting = self.around(LINE_BYTES, time, 0, schedule.sms, (ATOMIC, PAST_L1))
        fence = np.full(len(time), EVERYWHERE)
        end = fence + SECTOR_BYTES
        whole = Wanted(fence, end, time, self._sample.block, schedule.sms, (FENCE,))
        found = (self._last(one, schedule.life) for one in (evicting, whole))
        return np.asarray(np.maximum(*found))


def _with_gaps(
    sample: Sample, schedule: Schedule, last: Last, own: Array, last_near: Last | None = None
) -> Touches:
    """Look up the last touches of each sector, its line, and their neighbours.

    `last` gives the last touch of bytes before a time; `last_near` the same for neighbours of
    data-dependent addresses, because random touches there seldom coincide in time.
    """
    is_random, last_near = last_near is not None, last_near or last
    each = _one_by_one if is_random else _together
    lookup = _Lookup(sample, schedule, last)
    life, time, around = schedule.life, lookup.time, lookup.around
    never = np.full(len(time), np.inf)
    on_sector, on_line, at_end = each(
        last,
        (around(SECTOR_BYTES, time, sms=schedule.sms), lookup.lines(time), lookup.lines(never)),
        life,
    )
    on_line = np.where(time > 0, on_line, NEVER)
    kept = _kept_in_part(sample, schedule)
    grain = schedule.grain_bytes
    queries = [
        *((grain, time), (LINE_BYTES, time), (grain, time - schedule.under_way)),
        *((LINE_BYTES, never), (grain, never), (SECTOR_BYTES, time + kept)),
    ]
    gap, by_line, settled, line_after, grain_after, filled = each(
        last, [around(size, at) for size, at in queries], life
    )
    beside, *sides = (side >= time - SOON for side in each(last_near, lookup.soon(grain), life))
    sizes = SECTOR_BYTES, LINE_BYTES
    stores = [around(size, time, kinds=(STORE, ATOMIC)) for size in sizes]
    stored, line_stored = each(last, stores, life)
    # Local memory of a block was that of another block, one block duration before.
    is_row = are_rows(sample.begin)
    after = np.where(is_row, A_LIFE, np.inf)
    again = np.where(sample.block >= schedule.at_once, after, np.inf)
    return Touches(
        **vars(sample),
        time=time,
        own=sample.place - own,
        on_sm=time - np.where(lookup.evicted() < on_sector, on_sector, NEVER),
        line=time - on_line,
        gap=np.minimum(again, time - gap),
        by_line=np.minimum(again, time - by_line),
        settled=np.minimum(again, time - settled),
        stored=np.minimum(again, time - stored),
        line_stored=np.minimum(again, time - line_stored),
        after_all=np.minimum(after, schedule.length - line_after),
        after_own=schedule.length - at_end if schedule.is_alike else never,
        after_grain=np.minimum(after, schedule.length - grain_after),
        is_late=np.isinf(last(around(grain, sample.place), 0.0)),
        in_line=beside & (grain < LINE_BYTES),
        near=np.mean(sides, axis=0),
        is_filled=(filled > time + NOW) | (time + kept > schedule.length),
        is_random=np.full(len(time), is_random),
    )


def _together(last: Last, queries: Sequence[Wanted], life: float) -> Sequence[Array]:
    """Return the answers to queries of one length that are looked up together."""
    return np.split(last(Wanted.joined(queries), life), len(queries))


def _one_by_one(last: Last, queries: Sequence[Wanted], life: float) -> Sequence[Array]:
    """Return the answers to queries, each of bytes of one size."""
    return [last(one, life) for one in queries]


def _kept_in_part(sample: Sample, schedule: Schedule) -> float:
    """Return the residence of partially stored sectors in the L2, in block durations."""
    is_part = (sample.kind == STORE) & (sample.asked < 1)
    stored_bytes = SECTOR_BYTES * float(sample.weight[is_part].sum())
    if not stored_bytes:
        return SOON
    return max(SOON, schedule.partial_bytes * schedule.length / stored_bytes)
