"""How often sectors are touched whose addresses no rule gives: told from the blocks that ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.gpu.memory import SECTOR_BYTES
from gpusim.prediction.locality.lookup import NEVER, Wanted
from gpusim.prediction.locality.sample import Sample
from gpusim.prediction.locality.schedule import ONE_AFTER_THE_OTHER, Course
from gpusim.prediction.streams.stretches import STORE, Stretches

Array = np.ndarray[Any, Any]

MANY = 8  # pieces that are as common: so many tell how common they are
ONCE = 1 - 1e-9  # the rate of what each block touches
AT_ONCE = 1e-3  # lives of a block, in which all touch what each touches but at one time
MOST_ITERATIONS = 64  # of a loop of a block that was run, whose sectors are told apart
NONE = np.zeros(0, dtype=np.int64)
_PIECE_BITS = 41  # of the numbers of sectors


@dataclass(frozen=True)
class Pieces:
    """Which pieces of memory some blocks touch, once for each instruction `pc` of each block.

    In this order: by `block`, counted from 0, by instruction, and by `piece`.
    """

    blocks: int
    block: Array
    pc: Array
    piece: Array

    def of_size(self, size: int) -> Pieces:
        """Return sectors as pieces of a size, which is a multiple of theirs."""
        piece = self.piece * SECTOR_BYTES // size
        columns = self.block, self.pc, piece
        is_new = np.ones(len(piece), dtype=bool)
        is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return Pieces(self.blocks, *(column[is_new] for column in columns))

    def of(self, pc: int) -> Array:
        """Return the pieces that an instruction touches."""
        return self._by_pc.get(pc, NONE)

    @cached_property
    def _by_pc(self) -> Mapping[int, Array]:
        pc, piece = _pairs(self.pc, self.piece)
        first = np.flatnonzero(np.diff(pc, prepend=-1))
        return dict(zip(pc[first].tolist(), np.split(piece, first[1:]), strict=False))

    @cached_property
    def counts(self) -> tuple[Array, Array]:
        """The different pieces, and how many of the blocks touch each."""
        _, piece = _pairs(self.block, self.piece)
        return np.unique(piece, return_counts=True)

    def touching(self, pieces: Array) -> Array:
        """Return how many of the blocks touch each of some pieces."""
        values, counts = self.counts
        if not len(values):
            return np.zeros(len(pieces), dtype=np.int64)
        at = np.minimum(np.searchsorted(values, pieces), len(values) - 1)
        return np.where(values[at] == pieces, counts[at], 0)

    def in_others(self, pc: int) -> Array:
        """Return how many of an instruction's pieces none, one, two ... of the others touch.

        Each piece counts in each block that touches it by this instruction.
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
    """Pieces that are asked about, a row each: touched by an instruction `pc` of a block.

    It `is_counted` where that block is one of those that tell how common pieces are. The
    instruction makes so many `touches` in a block.
    """

    pc: Array
    piece: Array
    is_counted: Array
    touches: Array


def _pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the different pairs of two numbers, in order.

    As one number each, and sorted: that takes a tenth of the time of a row of two, and of the
    table of hashes by which NumPy finds the different ones of many numbers.
    """
    both = np.sort(first << _PIECE_BITS | second)
    both = both[np.diff(both, prepend=-1) != 0]
    return both >> _PIECE_BITS, both & (1 << _PIECE_BITS) - 1


def pieces_of(single: Mapping[int, Stretches], blocks: tuple[int, ...]) -> Pieces:
    """Return the sectors that blocks touch."""
    found = [np.stack(_pairs(*_expanded(single[block]))) for block in blocks]
    number = np.repeat(np.arange(len(blocks)), [one.shape[1] for one in found])
    return Pieces(len(blocks), number, *np.concatenate(found, axis=1))


@dataclass(frozen=True)
class Rates:
    """What fraction of the blocks touches some pieces, a row for each.

    It is `mean` and at `least` so much. Pieces that none of the blocks touches which were run vary:
    there the mean grows by `growth` with each of these that does. A block that touches a piece does
    so at most `again` and again.
    """

    mean: Array
    growth: Array
    least: Array
    again: Array

    def blocks_ago(self, draw: Array) -> Array:
        """Return how many blocks ago one touched each piece, infinite where none ever does.

        A part `draw` of all is touched later than that. Rates that vary do so by a gamma law (Efron
        and Thisted, "Estimating the Number of Unseen Species", 1976).
        """
        drawn = -np.log1p(-draw)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            alike = np.where(self.mean + self.least > 0, drawn / self._often, np.inf)
            at_most = drawn / -np.log1p(-np.minimum(self.least, ONCE))
            varied = np.expm1(drawn * self.growth / self.mean) / self.growth
        return np.asarray(np.where(self.growth > 0, np.minimum(varied, at_most), alike))

    def longest(self, draw: Array, lines: Rates) -> Array:
        """Return the draw of the longest time between touches of a line back to one of a piece.

        Of touches of the line a part p are of the piece, each for itself: with F of the times
        between them no longer than some, p F / (1 - (1 - p) F) have none that is longer.
        """
        part = np.minimum(1.0, self._often / lines._often)
        return np.asarray(draw / (part + (1 - part) * draw))

    @property
    def _often(self) -> Array:
        """Return how often a block touches each piece, if it does so at random."""
        fraction = np.clip(np.maximum(self.mean, self.least), 1e-12, ONCE)
        return np.asarray(np.minimum(-np.log1p(-fraction), np.maximum(fraction, self.again)))


def rates(spread: Pieces, asked: Asked, least: Array) -> Rates:
    """Return what fraction of the blocks touches pieces that instructions touch.

    Of the pieces that an instruction touches in each of some blocks f(c) are touched by c of the n
    others; whether a further block touches one stands (c + 1) f(c + 1) to (n - c) f(c) (Good, "The
    Population Frequencies of Species", 1953); where these are few, c to n - c.
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
    """Return the rates of pieces that none, one, two ... of some other blocks touch, so many."""
    others = len(frequency) - 2
    rate = np.arange(others + 1) / max(1, others)
    for c in range(others):
        if c == 0 or min(frequency[c], frequency[c + 1]) >= MANY:
            touched, left = (c + 1) * frequency[c + 1], (others - c) * frequency[c]
            rate[c] = touched / max(1, touched + left)
    return rate


def least_rates(spread: Pieces, neighbours: Pieces, pcs: Array, blocks: int) -> Array:
    """Return what fraction of all blocks touches a piece at least, by instruction.

    Where all of them touch more pieces than there are between the first and the last of them, each
    is touched several times on the mean, however far apart those are that touch the same. What
    neighbours touch in common counts once.
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
    """Return the sectors of stretches, of those in loops some of the iterations, and by whom."""
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


def by_chance(
    rates: Rates, lines: Rates, sample: Sample, course: Course, wanted: Wanted, life: float
) -> Array:
    """Return since when sectors are kept that blocks touch at a rate, in lives of a block.

    They were touched by any block, or by those on its SM; where `life` is 0 by those that begin
    together alone. These touch them at any time between the first and the last touch of their
    lives. NEVER where that is before the launch, of which a touch is taken to be by any block.

    A cache that does not lose their lines, touched at other rates, keeps them. So what counts is
    the longest of the times between touches of the line, back to that of the sector itself. Of
    sectors that are stored to, which wait for their other parts, that touch alone does.
    """
    places = sample.place - sample.place.min()
    blocks, length = (course.launch.blocks, course.length) if life else (course.at_once, 1.0)
    if life:  # of those that touch a piece at the same time one is the first
        places += _between(sample, length) * ((sample.draw + sample.second_draw) % 1.0)
    lasts = max(ONE_AFTER_THE_OTHER, length - 1 + float(places.max()))
    later = np.maximum(wanted.time - (sample.block * life + sample.place), 0.0)
    is_first = sample.second_draw * length < 1  # of the blocks that begin together
    passed = np.minimum(np.where(is_first, places, sample.second_draw * lasts) + later, lasts)
    apart = (wanted.sms or 1) * lasts / blocks
    ago = rates.blocks_ago(sample.draw) * apart
    now = np.where(np.isinf(wanted.time), course.length, wanted.time)
    longest = lines.blocks_ago(rates.longest(sample.draw, lines)) * apart
    since = np.where(sample.kind == STORE, ago, np.minimum(longest, passed))
    return np.where(ago < passed, now - since, NEVER)


def _between(sample: Sample, length: float) -> float:
    """Return the time between two touches of a block.

    Where there is but one it is hardly any, until blocks that follow others have drifted apart.
    """
    times = len(np.unique(np.stack([sample.pc, sample.place]), axis=1).T)
    if times > 1:
        return float(np.ptp(sample.place)) / (times - 1)
    return min(1.0, max(AT_ONCE, length - 1))
