"""Accesses that happen before an acquire: by threads' times, and by values seen at places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.checking.clock_rows import (
    BARRIER,
    HEARD,
    HOW,
    NARROW,
    PAIRS,
    PLACE,
    SEES,
    THREAD,
    TIME,
    TURN,
    WARP_SYNC,
)
from gpusim.checking.element_access import BLOCK_SHIFT, LOCATION_SHIFT, Array

# Groups of threads by bits of their number, and the column of each group's latest known time.
LEVELS = ((0, TIME), (5, WARP_SYNC), (BLOCK_SHIFT, BARRIER))


@dataclass(frozen=True)
class ReleasedClocks:
    """Groups of threads as sorted `keys`, and the latest known time of each."""

    keys: Array
    times: Array

    @classmethod
    def of(cls, fences: Array) -> ReleasedClocks:
        """Return the accesses known to threads at their fences."""
        threads = fences[:, THREAD]
        keys = [_key(threads, shift) for shift, _ in LEVELS]
        times = [fences[:, column] for _, column in LEVELS]
        for lane in range(min(fences.shape[1], HEARD) - PAIRS):
            keys.append(_key((threads & ~31) | lane, 0))
            times.append(fences[:, PAIRS + lane])
        for warp in range(fences.shape[1] - HEARD):
            keys.append(_key((threads & -(1 << BLOCK_SHIFT)) | (warp << 5), 5))
            times.append(fences[:, HEARD + warp])
        every, when = np.concatenate(keys), np.concatenate(times)
        order = np.lexsort((when, every))
        last = np.append(every[order][1:] != every[order][:-1], True)
        return cls(every[order][last], when[order][last])

    def covers(self, accesses: Array) -> Array:
        """Return a mask of the known accesses, given their threads and times."""
        thread, time = accesses[:2]
        found = np.zeros(len(thread), dtype=bool)
        for shift, _ in LEVELS:
            key = _key(thread, shift)
            place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            found |= (self.keys[place] == key) & (time <= self.times[place])
        return found


@dataclass(frozen=True)
class AcquiredLocations:
    """Places of memory, sorted, and the turn of the last acquire at each.

    Accesses of block scope are seen within the block only: `own` are places of global memory
    by block.
    """

    wide: Turns
    own: Turns | None

    @classmethod
    def of(cls, seen: Array) -> AcquiredLocations:
        """Return the places and turns that acquire operations have seen, whatever their fences."""
        seen = seen[(seen[:, HOW] & SEES) != 0]
        wide, mine = seen[:, NARROW] == 0, seen[:, PLACE] >> LOCATION_SHIFT == 0
        places, turns = seen[:, PLACE], seen[:, TURN]
        own = _within(places, seen[:, THREAD])[mine]
        return cls(
            Turns.of(places[wide], turns[wide]),
            Turns.of(own, turns[mine]) if mine.any() else None,
        )

    def covers(self, accesses: Array) -> Array:
        """Return a mask of accesses with a turn before their place was seen."""
        thread, _, where, turns, narrow = accesses
        found = (narrow == 0) & self.wide.come_after(where, turns)
        if self.own is not None:
            mine = where >> LOCATION_SHIFT == 0
            found |= mine & self.own.come_after(_within(where, thread), turns)
        return np.asarray(found)


@dataclass(frozen=True)
class Turns:
    """Places, sorted, and the turns of their accesses."""

    places: Array
    turns: Array

    @classmethod
    def of(cls, places: Array, turns: Array) -> Turns:
        """Return the turns of places."""
        order = np.lexsort((turns, places))
        return cls(places[order], turns[order])

    def come_after(self, where: Array, turns: Array) -> Array:
        """Return a mask of other turns that precede one of these at the same place."""
        last = np.searchsorted(self.places, where, side="right") - 1
        if not len(self.places):
            return np.zeros(len(where), dtype=bool)
        return np.asarray((last >= 0) & (self.places[last] == where) & (self.turns[last] > turns))


def _within(places: Array, threads: Array) -> Array:
    """Return places of global memory, numbered per block of the threads."""
    return np.asarray(((threads >> BLOCK_SHIFT) + 1) << LOCATION_SHIFT | places)


def _key(threads: Array, shift: int) -> Array:
    return np.asarray(((threads >> shift) << 4) | shift)
