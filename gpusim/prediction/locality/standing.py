"""Stretches of single blocks without a loop, by place: the same bytes, touched again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.prediction.locality.wanted import NEVER, SOON, Pairs, Wanted, within
from gpusim.prediction.streams.ordering import stable_order
from gpusim.prediction.streams.stretches import Stretches

Array = np.ndarray[Any, Any]


class Places:
    """The distinct places of stretches: bytes from `begin` up to `end`, touched by one of `blocks`.

    `rows` are a stretch of each place. The touches of a place are found by bisection, where many
    stretches of one place would be a candidate each.
    """

    def __init__(self, stretches: Stretches, blocks: Array) -> None:
        order = _by_place(stretches)
        begin, end, time = (getattr(stretches, n)[order] for n in ("begin", "end", "time"))
        whose = blocks[order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])
        is_first[1:] |= whose[1:] != whose[:-1]
        if (~is_first[1:] & (time[1:] < time[:-1])).any():
            in_time = np.lexsort((time, np.cumsum(is_first)))
            order, time = order[in_time], time[in_time]
        self._first = np.flatnonzero(is_first)
        self._last = np.append(self._first[1:], len(order)) - 1
        self._time = time
        self.rows = stretches.at(order[self._first])
        self.blocks = whose[self._first]

    def times(self, life: float, steps: int) -> Array:
        """Return the times of all touches, in block durations."""
        begun = np.repeat(self.blocks * life, self._last - self._first + 1)
        return np.asarray(self._time / steps + begun)

    def latest(self, times: Array, place: Array, before: Array) -> Array:
        """Return the latest of the `times` at some places before other ones, NEVER without any."""
        low, high = self._first[place], self._last[place]
        found = np.where(times[high] < before, times[high], NEVER)
        left = np.flatnonzero((times[low] < before) & (times[high] >= before))
        low, high, before = low[left], high[left], before[left]
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            is_before = times[middle] < before
            low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
        found[left] = times[low]
        return found


class Standing:
    """Looks up the latest touch by stretches of single blocks without a loop."""

    def __init__(self, places: Places, ranges: Array, life: float, steps: int) -> None:
        self._places, self._times = places, places.times(life, steps)
        self._counts = within(places.blocks, ranges)

    def places(self, pairs: int) -> int:
        """Return the number of candidates for a number of pairs."""
        return pairs

    def run(
        self, stretches: Stretches, wanted: Wanted, pairs: Pairs, blocks: Array, steps: int
    ) -> Array:
        """Return the latest touch for each query, by the places paired with it."""
        number, place = pairs
        counts = self._counts[place]
        if wanted.sms:
            counts &= (blocks[place] - wanted.block[number]) % wanted.sms == 0
        number, place = number[counts], place[counts]
        time = self._places.latest(self._times, place, (wanted.time - SOON)[number])
        best = np.full(len(wanted), NEVER)
        np.maximum.at(best, number, time)
        return best


def _by_place(stretches: Stretches) -> Array:
    """Return the order of stretches by their bytes, those of the same bytes as they are."""
    lowest = int(stretches.begin.min(initial=0))
    size = stretches.end - stretches.begin
    lengths = int(size.max(initial=0)) + 1
    return stable_order((stretches.begin - lowest) * lengths + size)
