"""How often sectors are touched whose addresses no rule gives: told from the blocks that ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.memory import SECTOR_BYTES
from gpusim.prediction.memory.course import Course
from gpusim.prediction.memory.sample import Sample
from gpusim.prediction.memory.touched import Stretches

Array = np.ndarray[Any, Any]

MANY = 8  # pieces that are as common: so many tell how common they are
MOST_ITERATIONS = 64  # of a loop of a block that was run, whose sectors are told apart


def rates(
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


def least_rates(
    single: Mapping[int, Stretches], spread: tuple[int, ...], pcs: Array, size: int, blocks: int
) -> Array:
    """Return what fraction of all blocks touches a piece of a size at least, by instruction.

    Where all of them touch more pieces than there are between the first and the last of them, each
    is touched several times on the mean, however far apart those are that touch the same.
    """
    found = {pc: _least_rate(single, spread, pc, size, blocks) for pc in np.unique(pcs).tolist()}
    return np.array([found[pc] for pc in pcs.tolist()])


def _least_rate(
    single: Mapping[int, Stretches], spread: tuple[int, ...], pc: int, size: int, blocks: int
) -> float:
    rows = [single[b].at(single[b].pc == pc) for b in spread]
    begin = np.concatenate([one.begin for one in rows])
    if not len(begin):
        return 0.0
    end = np.concatenate([one.end + one.times * np.maximum(one.stride, 0) for one in rows])
    pieces = (int(end.max()) - 1) // size - int(begin.min()) // size + 1
    touched = sum(float(((1 + one.times) * one.pieces(size)).sum()) for one in rows) / len(spread)
    often = touched * blocks / pieces
    return min(1.0, max(0.0, 1 - 1 / often) * touched / pieces) if often else 0.0


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


def by_chance(rate: Array, sample: Sample, course: Course, every: int) -> Array:
    """Return how long ago sectors were touched that blocks touch at a rate: evenly spread draws.

    By one of `every` so many blocks: by each, or those of an SM. Infinite where that is before the
    launch, of which a touch is taken to be at any time.
    """
    begun = sample.second_draw * course.launch.blocks // every
    with np.errstate(divide="ignore"):
        blocks = np.where(
            rate > 0, np.log1p(-sample.draw) / np.log1p(-np.minimum(rate, 1 - 1e-9)), np.inf
        )
    return np.where(blocks < begun, np.ceil(blocks) * every * course.life, np.inf)
