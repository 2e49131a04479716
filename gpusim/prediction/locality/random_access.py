"""Random access: touch rates of sectors at data-dependent addresses, from sampled blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.arithmetic.grouping import groups
from gpusim.prediction.locality.lookup import NEVER, Wanted
from gpusim.prediction.locality.sample import Sample
from gpusim.prediction.locality.schedule import ONE_AFTER_THE_OTHER, Schedule
from gpusim.prediction.streams.stretches import STORE, Stretches

Array = np.ndarray[Any, Any]

MANY = 8  # pieces of equal count: the least for an estimate of their rate
ONCE = 1 - 1e-9  # the rate of a piece touched by each block
AT_ONCE = 1e-3  # block durations: spread of the single touch of each block of a wave
MOST_ITERATIONS = 64  # iterations of a loop with sectors of their own, by sampled block
NONE = np.zeros(0, dtype=np.int64)
_PIECE_BITS = 41  # of sector numbers


@dataclass(frozen=True)
class Pieces:
    """Pieces of memory touched by sampled blocks, once for each instruction `pc` of each block.

    Sorted by `block`, counted from 0, then by `pc`, then by `piece`.
    """

    blocks: int
    block: Array
    pc: Array
    piece: Array

    def of_size(self, size: int) -> Pieces:
        """Merge sectors into pieces of `size` bytes, a multiple of the sector size."""
        piece = self.piece * SECTOR_BYTES // size
        columns = self.block, self.pc, piece
        is_new = np.ones(len(piece), dtype=bool)
        is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return Pieces(self.blocks, *(column[is_new] for column in columns))

    def of(self, pc: int) -> Array:
        """Return the pieces of an instruction."""
        return self._by_pc.get(pc, NONE)

    @cached_property
    def _by_pc(self) -> Mapping[int, Array]:
        pc, piece = _pairs(self.pc, self.piece)
        first = np.flatnonzero(np.diff(pc, prepend=-1))
        return dict(zip(pc[first].tolist(), np.split(piece, first[1:]), strict=False))

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The distinct pieces, and the number of sampled blocks that touch each."""
        _, piece = _pairs(self.block, self.piece)
        return np.unique(piece, return_counts=True)

    def touching(self, pieces: Array) -> Array:
        """Return the number of sampled blocks that touch each of some pieces."""
        values, counts = self.counts
        if not len(values):
            return np.zeros(len(pieces), dtype=np.int64)
        at = np.minimum(np.searchsorted(values, pieces), len(values) - 1)
        return np.where(values[at] == pieces, counts[at], 0)

    def in_others(self, pc: int) -> Array:
        """Return the histogram of an instruction's pieces by number of other touching blocks.

        Each piece counts once for each block that touches it by this instruction.
        """
        return self._in_others.get(pc, np.zeros(self.blocks + 1, dtype=np.int64))

    @cached_property
    def _in_others(self) -> Mapping[int, Array]:
        values, counts = self.counts
        others = counts[np.searchsorted(values, self.piece)] - 1
        pcs, number = np.unique(self.pc, return_inverse=True)
        size = self.blocks + 1
        table = np.bincount(number * size + others, minlength=len(pcs) * size)
        return dict(zip(pcs.tolist(), table.reshape(-1, size), strict=True))


@dataclass(frozen=True)
class Asked:
    """Queried pieces, one per row: touched by an instruction `pc` of a block.

    It `is_counted` if that block is itself among the sampled ones. `touches` is the number of
    touches per block by the instruction.
    """

    pc: Array
    piece: Array
    is_counted: Array
    touches: Array


def _pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the distinct pairs of two numbers, sorted.

    Packed into one integer each and sorted: a tenth of the time of rows of two, or of the hash
    table in NumPy's `unique`.
    """
    both = np.sort(first << _PIECE_BITS | second)
    both = both[np.diff(both, prepend=-1) != 0]
    return both >> _PIECE_BITS, both & (1 << _PIECE_BITS) - 1


def pieces_of(single: Mapping[int, Stretches], blocks: tuple[int, ...]) -> Pieces:
    """Return the sectors touched by blocks."""
    found = [np.stack(_pairs(*_expanded(single[block]))) for block in blocks]
    number = np.repeat(np.arange(len(blocks)), [one.shape[1] for one in found])
    return Pieces(len(blocks), number, *np.concatenate(found, axis=1))


@dataclass(frozen=True)
class Rates:
    """Touch rates of pieces: the fraction of blocks that touch each, one per row.

    The rate has mean `mean` and lower bound `least`. For pieces untouched by the sample it varies:
    the mean grows by `growth` with each sampled block that touches a piece. A block that touches a
    piece does so at most `again` times.
    """

    mean: Array
    growth: Array
    least: Array
    again: Array

    def blocks_ago(self, draw: Array) -> Array:
        """Return the number of blocks since the last touch of each piece, infinite if never.

        `draw` is the quantile from the recent end. Varying rates have a gamma distribution (Efron
        and Thisted, "Estimating the Number of Unseen Species", 1976).
        """
        drawn = -np.log1p(-draw)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            alike = np.where(self.mean + self.least > 0, drawn / self._often, np.inf)
            at_most = drawn / -np.log1p(-np.minimum(self.least, ONCE))
            varied = np.expm1(drawn * self.growth / self.mean) / self.growth
        return np.asarray(np.where(self.growth > 0, np.minimum(varied, at_most), alike))

    def longest(self, draw: Array, lines: Rates) -> Array:
        """Return the quantile of the longest gap between touches of a line since a piece's touch.

        A fraction p of the line's touches are of the piece, independently: with F the fraction of
        gaps up to a length, p F / (1 - (1 - p) F) is the probability that no gap is longer.
        """
        part = np.minimum(1.0, self._often / lines._often)
        return np.asarray(draw / (part + (1 - part) * draw))

    @property
    def _often(self) -> Array:
        """Return the mean number of touches of each piece per block, for random touches."""
        fraction = np.clip(np.maximum(self.mean, self.least), 1e-12, ONCE)
        return np.asarray(np.minimum(-np.log1p(-fraction), np.maximum(fraction, self.again)))


def rates(spread: Pieces, asked: Asked, least: Array) -> Rates:
    """Return touch rates of the queried pieces.

    Let f(c) be the number of an instruction's pieces, over the sampled blocks, with c touching
    blocks among the n others. The odds that a further block touches one are (c + 1) f(c + 1) to
    (n - c) f(c) (Good, "The Population Frequencies of Species", 1953); c to n - c where these
    counts are few.
    """
    seen = np.maximum(spread.touching(asked.piece) - asked.is_counted, 0)
    mean, growth, again = np.zeros((3, len(seen)))
    for pc in np.unique(asked.pc).tolist():
        frequency = spread.in_others(pc)
        rate, mine = _by_count(frequency), asked.pc == pc
        mean[mine] = rate[np.minimum(seen[mine], len(rate) - 1)]
        again[mine] = asked.touches[mine] * spread.blocks / max(1, frequency.sum())
        if min(frequency[:3]) >= MANY:
            growth[mine & (seen == 0)] = max(0.0, rate[1] - rate[0])
    return Rates(mean, growth, least, again)


def _by_count(frequency: Array) -> Array:
    """Return rates of pieces by number of touching blocks, from their histogram."""
    others = len(frequency) - 2
    rate = np.arange(others + 1) / max(1, others)
    for c in range(others):
        if c == 0 or min(frequency[c], frequency[c + 1]) >= MANY:
            touched, left = (c + 1) * frequency[c + 1], (others - c) * frequency[c]
            rate[c] = touched / max(1, touched + left)
    return rate


def least_rates(spread: Pieces, neighbours: Pieces, pcs: Array, blocks: int) -> Array:
    """Return the lower bound of the touch rate, by instruction.

    If all blocks together make more touches than there are pieces in the instruction's range, each
    piece is touched several times on average, at any distance. Touches shared by neighbours count
    once.
    """
    found = {pc: _least_rate(spread, neighbours, pc, blocks) for pc in np.unique(pcs).tolist()}
    return np.array([found[pc] for pc in pcs.tolist()])


def _least_rate(spread: Pieces, neighbours: Pieces, pc: int, blocks: int) -> float:
    pieces = spread.of(pc)
    if not len(pieces):
        return 0.0
    touched = len(neighbours.of(pc)) / neighbours.blocks / (pieces[-1] - pieces[0] + 1)
    often = touched * blocks
    return min(1.0, max(0.0, 1 - 1 / often) * touched) if often else 0.0


def _expanded(rows: Stretches) -> tuple[Array, Array]:
    """Return pcs and sectors of stretches, with the first iterations of loops."""
    first, count = rows.begin // SECTOR_BYTES, rows.sectors
    sectors = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    pc = np.repeat(rows.pc, count)
    stride = np.repeat(rows.stride // SECTOR_BYTES, count)
    times = np.repeat(rows.times, count)
    made = [(pc, sectors)]
    for iteration in range(1, min(MOST_ITERATIONS, int(times.max(initial=0))) + 1):
        is_made = times >= iteration
        made.append((pc[is_made], (sectors + iteration * stride)[is_made]))
    return np.concatenate([one[0] for one in made]), np.concatenate([one[1] for one in made])


def by_random_access(
    rates: Rates, lines: Rates, sample: Sample, schedule: Schedule, wanted: Wanted, life: float
) -> Array:
    """Return the time from which on sectors stay in a cache, by touch rates, in block durations.

    Touches of any block count, or of blocks on the same SM; with `life` 0, of blocks of one wave,
    at any time between the first and last touch of a block. NEVER if the last touch precedes the
    launch; a touch within it is by a random block.

    A cache with the line resident by touches of its other sectors keeps the sector too. Decisive
    is therefore the longest gap between touches of the line since the sector's own touch. For a
    partially stored sector in the write-back queue, its own last touch is decisive.
    """
    places = sample.place - sample.place.min()
    blocks, length = (schedule.launch.blocks, schedule.length) if life else (schedule.at_once, 1.0)
    if life:  # of simultaneous touches of a piece, one is the first
        places += _between(sample, length) * ((sample.draw + sample.second_draw) % 1.0)
    lasts = max(ONE_AFTER_THE_OTHER, length - 1 + float(places.max()))
    later = np.maximum(wanted.time - (sample.block * life + sample.place), 0.0)
    is_first = sample.second_draw * length < 1  # a block of the first wave
    passed = np.minimum(np.where(is_first, places, sample.second_draw * lasts) + later, lasts)
    apart = (wanted.sms or 1) * lasts / blocks
    ago = rates.blocks_ago(sample.draw) * apart
    now = np.where(np.isinf(wanted.time), schedule.length, wanted.time)
    longest = lines.blocks_ago(rates.longest(sample.draw, lines)) * apart
    since = np.where(sample.kind == STORE, ago, np.minimum(longest, passed))
    return np.where(ago < passed, now - since, NEVER)


def _between(sample: Sample, length: float) -> float:
    """Return the mean time between touches of a block.

    For a single touch it is almost 0, until later blocks have drifted apart.
    """
    times = len(groups(sample.pc, sample.place)[0])
    if times > 1:
        return float(np.ptp(sample.place)) / (times - 1)
    return min(1.0, max(AT_ONCE, length - 1))
