"""How often sectors are touched whose addresses no rule gives: told from the blocks that ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.memory import SECTOR_BYTES
from gpusim.prediction.memory.course import Course
from gpusim.prediction.memory.sample import Sample
from gpusim.prediction.streams.stretches import Stretches

Array = np.ndarray[Any, Any]

MANY = 8  # pieces that are as common: so many tell how common they are
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


def rates(spread: Pieces, pcs: Array, pieces: Array) -> Array:
    """Return what fraction of the blocks touches pieces that instructions touch.

    Of all that an instruction touches f(c) pieces are touched by c of n blocks; whether a further
    block touches one of them stands (c + 1) f(c + 1) to (n - c) f(c) (Good, "The Population
    Frequencies of Species", 1953); where these are few, c to n - c.
    """
    values, counts = spread.counts
    at = np.minimum(np.searchsorted(values, pieces), len(values) - 1)
    seen = np.where(values[at] == pieces, counts[at], 0)
    rate = np.zeros(len(pcs))
    for pc in np.unique(pcs).tolist():
        common = counts[np.searchsorted(values, spread.of(pc))]
        mine = pcs == pc
        rate[mine] = _by_count(np.bincount(common, minlength=spread.blocks + 2))[seen[mine]]
    return rate


def _by_count(frequency: Array) -> Array:
    """Return the rates of pieces that none, one, two ... of some blocks touch, so many each."""
    blocks = len(frequency) - 2
    rate = np.arange(blocks + 1) / blocks
    for c in range(1, blocks):
        if c == 1 or min(frequency[c], frequency[c + 1]) >= MANY:
            touched, others = (c + 1) * frequency[c + 1], (blocks - c) * frequency[c]
            rate[c] = touched / max(1, touched + others)
    rate[0] = rate[1]
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


def by_chance(rate: Array, sample: Sample, course: Course, every: int) -> Array:
    """Return how long ago sectors were touched that blocks touch at a rate, in lives of a block.

    By one of `every` so many blocks: by each, or those of an SM. Blocks that run together touch
    them at any time between the first and the last touch of their lives. Infinite where that is
    before the launch, of which a touch is taken to be by any block.
    """
    begun = sample.second_draw * course.launch.blocks / every
    with np.errstate(divide="ignore"):
        blocks = np.where(
            rate > 0, np.log1p(-sample.draw) / np.log1p(-np.minimum(rate, 1 - 1e-9)), np.inf
        )
    apart = (course.length - 1 + np.ptp(sample.place)) / course.launch.blocks
    return np.where(blocks < begun, blocks * every * max(course.life, apart), np.inf)
