"""Random access: touch rates of sectors at data-dependent addresses, from sampled blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.prediction.arithmetic.grouping import distinct, groups
from gpusim.prediction.locality.pieces import Pieces
from gpusim.prediction.locality.sample import Sample
from gpusim.prediction.locality.schedule import ONE_AFTER_THE_OTHER, Schedule
from gpusim.prediction.locality.wanted import NEVER, Wanted
from gpusim.prediction.streams.kinds_by_pc import STORE
from gpusim.typing import Array

MANY = 8  # pieces of equal count: the least for an estimate of their rate
ONCE = 1 - 1e-9  # the rate of a piece touched by each block
AT_ONCE = 1e-3  # block durations: spread of the single touch of each block of a wave


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
    never = np.zeros(spread.blocks + 1, dtype=np.int64)
    for pc in distinct(asked.pc).tolist():
        frequency = spread.in_others.get(pc, never)
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
    count, found, further = np.arange(others), frequency[:others], frequency[1 : others + 1]
    are_many = (np.minimum(found, further) >= MANY) | (count == 0)
    touched, left = (count + 1) * further, (others - count) * found
    rate[:others][are_many] = (touched / np.maximum(1, touched + left))[are_many]
    return rate


def least_rates(spread: Pieces, neighbours: Pieces, pcs: Array, blocks: int) -> Array:
    """Return the lower bound of the touch rate, by instruction.

    If all blocks together make more touches than there are pieces in the instruction's range, each
    piece is touched several times on average, at any distance. Touches shared by neighbours count
    once.
    """
    found = {pc: _least_rate(spread, neighbours, pc, blocks) for pc in distinct(pcs).tolist()}
    return np.array([found[pc] for pc in pcs.tolist()])


def _least_rate(spread: Pieces, neighbours: Pieces, pc: int, blocks: int) -> float:
    if pc not in spread.extents:
        return 0.0
    touched = neighbours.different.get(pc, 0) / neighbours.blocks / spread.extents[pc]
    often = touched * blocks
    return min(1.0, max(0.0, 1 - 1 / often) * touched) if often else 0.0


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
