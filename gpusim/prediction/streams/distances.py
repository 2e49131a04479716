"""Distances between the lines that a warp loads, in the classes that DRAM distinguishes.

The classes are the same line, near, middle, and beyond.
"""

from __future__ import annotations

import numpy as np

from gpusim.gpu.memory import LINE_BITS, LINE_BYTES, MIDDLE_BYTES, NEAR_BYTES, NOWHERE
from gpusim.typing import Array

CLASSES = 4
# Warps of a block that fetch within a KB at once wait almost equally long.
SHARED_LATENCY_LINES = 8
EARLIER = 8  # preceding loads, among them the nearest counts
# A count of each class packed into one number, eight bits each; the same line is not counted.
_BITS = 8
_ONE_OF_CLASS = np.array([0, *(1 << _BITS * number for number in range(CLASSES - 1))])


def _classes(lines: Array) -> Array:
    """Return the classes of distances in lines."""
    limits = NEAR_BYTES // LINE_BYTES, MIDDLE_BYTES // LINE_BYTES
    return sum(((lines > limit).astype(np.int8) for limit in limits), start=lines > 0)


def within(ordered: Array) -> Array:
    """Return, per warp, the gaps between the lines that it touches, packed.

    Addresses are in order, shaped (warps, 32), NOWHERE for lanes that are off.
    """
    apart = np.diff(ordered >> LINE_BITS, axis=-1)
    counts = (apart > 0) & (ordered[..., 1:] < NOWHERE)
    return np.asarray(np.where(counts, _ONE_OF_CLASS[_classes(apart)], 0).sum(axis=-1))


def to_next_warp(lowest: Array, gaps: Array, is_next: Array) -> Array:
    """Return the distance in lines from each warp's load to that of the next warp of its block.

    `lowest` is the lowest line of each load, -1 without a predicated-on lane, and `gaps` the packed
    gaps between its lines; `is_next` tells, of all but the first, whether the one before it is by
    the block's warp before. Distances are capped at `SHARED_LATENCY_LINES`, also the value for
    loads with distant lines of their own; the last warp has that of the one before it.
    """
    apart = np.full(lowest.shape, SHARED_LATENCY_LINES, dtype=np.int64)
    are_on = (lowest[..., :-1] >= 0) & (lowest[..., 1:] >= 0)
    found = np.minimum(np.abs(np.diff(lowest)), SHARED_LATENCY_LINES)
    known = is_next & are_on
    apart[..., 1:] = np.where(known, found, apart[..., 1:])
    apart[..., :-1] = np.where(known, found, apart[..., :-1])
    are_near = gaps < 1 << _BITS  # no gap beyond the first class
    return np.where(are_near, apart, SHARED_LATENCY_LINES)


def counts_of(gaps: Array) -> Array:
    """Return the number of packed gaps in each class, along a new last axis."""
    shifts = _BITS * np.arange(CLASSES - 1)
    counts = gaps[..., None] >> shifts & (1 << _BITS) - 1
    return np.concatenate([np.zeros_like(counts[..., :1]), counts], axis=-1)


def to_earlier(lowest: Array, warps: Array) -> Array:
    """Return the distance classes from a warp's loads to the ones before, two bits for each.

    `lowest` is the lowest line of each access, -1 for accesses other than loads, of `warps` one
    after the other.
    """
    packed = np.zeros(len(lowest), dtype=np.int32)
    loads = np.flatnonzero(lowest >= 0)
    lines, whose = lowest[loads], warps[loads]
    found = np.zeros(len(loads), dtype=np.int32)
    for back in range(1, min(EARLIER, len(lines) - 1) + 1):
        codes = _classes(np.abs(lines[back:] - lines[:-back])).astype(np.int32)
        codes[whose[back:] != whose[:-back]] = 0
        found[back:] |= codes << 2 * (back - 1)
    packed[loads] = found
    return packed


def nearest(packed: Array, accesses: Array) -> Array:
    """Return the class of the nearest of the last `accesses` loads, of one at least."""
    back = np.arange(EARLIER)
    classes = packed[..., None] >> 2 * back & CLASSES - 1
    is_before = back < np.maximum(accesses, 1)[..., None]
    return np.asarray(np.where(is_before, classes, CLASSES - 1).min(axis=-1))
