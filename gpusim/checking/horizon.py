"""What others can know of threads: up to when, and what was seen of places of memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.checking.knowledge import BARRIER, HEARD, PAIRS, PLACE, THREAD, TIME, TURN, WARP_SYNC
from gpusim.checking.touch import BLOCK_SHIFT, Array

# How threads are put together, and the column that says up to when such a group is known.
LEVELS = ((0, TIME), (5, WARP_SYNC), (BLOCK_SHIFT, BARRIER))


@dataclass(frozen=True)
class Horizon:
    """Groups of threads as sorted `keys`, and the times up to which they are known."""

    keys: Array
    times: Array

    @classmethod
    def of(cls, fences: Array) -> Horizon:
        """Return what threads knew when they ran some fences."""
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
        """Return which accesses are known, given their threads and times."""
        thread, time = accesses[:2]
        found = np.zeros(len(thread), dtype=bool)
        for shift, _ in LEVELS:
            key = _key(thread, shift)
            place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            found |= (self.keys[place] == key) & (time <= self.times[place])
        return found


@dataclass(frozen=True)
class Sights:
    """Places of memory, sorted, and the turn at which each was seen last."""

    places: Array
    turns: Array

    @classmethod
    def of(cls, seen: Array) -> Sights:
        """Return what acquisitions have seen."""
        order = np.lexsort((seen[:, TURN], seen[:, PLACE]))
        return cls(seen[order, PLACE], seen[order, TURN])

    def covers(self, accesses: Array) -> Array:
        """Return which accesses had their turn before their place was seen."""
        _, _, where, turns = accesses
        last = np.searchsorted(self.places, where, side="right") - 1
        return np.asarray((last >= 0) & (self.places[last] == where) & (self.turns[last] > turns))


def _key(threads: Array, shift: int) -> Array:
    return np.asarray(((threads >> shift) << 4) | shift)
