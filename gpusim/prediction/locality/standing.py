"""Stretches of single blocks without a loop, by place: the same bytes, touched again and again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim.prediction.locality.wanted import NEVER, SOON, Pairs, Wanted, within
from gpusim.prediction.streams.ordering import stable_order
from gpusim.prediction.streams.stretches import Stretches
from gpusim.typing import Array


class Places:
    """The distinct places of stretches: bytes from `begin` up to `end`, touched by one of `blocks`.

    Of each there is one of the `rows`. The touches of a place are found by bisection, where many
    stretches of one place would be a candidate each. Places are whole multiples of `grain` bytes.
    """

    def __init__(self, stretches: Stretches, blocks: Array, grain: int) -> None:
        first, last = stretches.begin // grain, (stretches.end - 1) // grain
        order = _by_place(first, last)
        begin, end, time = first[order], last[order], stretches.time[order]
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
        begin, end = begin[self._first] * grain, (end[self._first] + 1) * grain
        self.rows = replace(stretches.at(order[self._first]), begin=begin, end=end)
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


def _by_place(first: Array, last: Array) -> Array:
    """Return the order of stretches by their first and last grain, equal ones as they are."""
    lowest = int(first.min(initial=0))
    lengths = int((last - first).max(initial=0)) + 1
    return stable_order((first - lowest) * lengths + last - first)
