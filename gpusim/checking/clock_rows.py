"""Happened-before knowledge of threads within their block: a row of numbers per thread and time."""

from __future__ import annotations

import numpy as np

from gpusim.checking.element_access import BLOCK_SHIFT, LOCATION_SHIFT, ElementAccess, warp_of
from gpusim.typing import Array

# Columns. KEY is the lookup key of a row; MET is when the thread met any other last, TURN counts
# accesses to flags, also within one step; NARROW is 1 for flags of block scope, AWAITS for accesses
# that wait for a value or swap it; from PAIRS on is when the thread met each lane of its warp,
# where that differs by lane, and from HEARD on the latest known time of each warp of its block,
# where barriers join some of them.
KEY, THREAD, TIME, BARRIER, WARP_SYNC, MET, TURN, PLACE, NARROW, AWAITS, PAIRS = range(11)
HEARD = PAIRS + 32


def locations(touch: ElementAccess) -> Array:
    """Return a number for the memory and element of each entry."""
    return np.asarray((np.int64(touch.memory) << LOCATION_SHIFT) | touch.element)


def clock_rows(touch: ElementAccess) -> Array:
    """Return the clocks of each thread of a touch, found by block."""
    rows = np.zeros((len(touch.thread), PAIRS), dtype=np.int64)
    rows[:, KEY] = touch.thread >> BLOCK_SHIFT
    rows[:, THREAD] = touch.thread
    rows[:, TIME] = touch.time
    rows[:, BARRIER] = touch.barrier
    rows[:, WARP_SYNC] = touch.warp_sync
    rows[:, MET] = touch.warp_sync
    parts = [rows]
    if touch.pairs is not None:
        rows[:, MET] = np.maximum(rows[:, MET], touch.pairs.max(axis=1))
        parts.append(touch.pairs)
    if touch.heard is not None:
        if touch.pairs is None:
            parts.append(np.zeros((len(rows), HEARD - PAIRS), dtype=np.int64))
        parts.append(touch.heard.every)
    return np.concatenate(parts, axis=1)


def is_ordered(who: Array, thread: Array, time: Array) -> Array:
    """Return, row by row, whether barriers (or its program) order an access before a thread."""
    differs = who[:, THREAD] ^ thread
    met = who[:, WARP_SYNC]
    if who.shape[1] > PAIRS:
        met = np.maximum(met, who[np.arange(len(who)), PAIRS + (thread & 31)])
    passed = who[:, BARRIER]
    if who.shape[1] > HEARD:
        passed = np.maximum(passed, who[np.arange(len(who)), HEARD + warp_of(thread)])
    known = (differs == 0) & (time <= who[:, TIME])
    known |= ((differs >> BLOCK_SHIFT) == 0) & (time <= passed)
    known |= ((differs >> 5) == 0) & (time <= met)
    return np.asarray(known)
