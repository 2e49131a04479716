"""Order by one flag: a thread's fence and store to it, another thread's load and fence.

Most orders by flags have this form. They are found by search in the recorded handovers, for all
pairs of a step at once, without the clocks of `releases`; longer chains are left to these.
"""

from __future__ import annotations

from collections import deque
from itertools import chain

import numpy as np

from gpusim.checking.clock_rows import MET, PLACE, THREAD, TIME, is_ordered
from gpusim.checking.element_access import BLOCK_SHIFT, MOST_BLOCKS
from gpusim.checking.ledger import Ledger
from gpusim.typing import Array

# The last fences among which a release looks for its own, and the last handovers between two blocks
# that are looked at. What is not found here is found by clocks.
FENCES, HANDOVERS = 64, 8


class Handovers:
    """Handovers from one thread to another, by the blocks of both.

    Fences and flags are those that reach all blocks; acquisitions are complete at the next fence.
    """

    def __init__(self) -> None:
        self._fences: deque[Array] = deque(maxlen=FENCES)  # clocks, by thread
        self._sources, self._count = np.zeros((64, MET + 1), dtype=np.int64), 0
        self._last: dict[int, int] = {}  # of each place, the number of its last release
        self._waiting: dict[int, list[int]] = {}  # numbers by thread, until its next fence
        self._done = Ledger()  # blocks of both, thread, time, and number

    def fence(self, rows: Array) -> None:
        """Record the clocks of threads that run a fence, which complete their acquisitions."""
        order = np.argsort(rows[:, THREAD], kind="stable")
        rows = rows[order, : MET + 1]
        self._fences.append(rows)
        if self._waiting:
            waiting = [self._waiting.pop(thread, []) for thread in rows[:, THREAD].tolist()]
            every = np.repeat(rows, list(map(len, waiting)), axis=0)
            self._complete(every, np.array(list(chain(*waiting)), dtype=np.int64))

    def acquire(self, rows: Array, *, is_complete: bool) -> None:
        """Record loads of flags, perhaps complete without a fence."""
        numbers = np.array([self._last.get(place, -1) for place in rows[:, PLACE].tolist()])
        rows, numbers = rows[numbers >= 0], numbers[numbers >= 0]
        if is_complete:
            self._complete(rows, numbers)
        else:
            for thread, number in zip(rows[:, THREAD].tolist(), numbers.tolist(), strict=True):
                self._waiting.setdefault(thread, []).append(number)

    def _complete(self, rows: Array, numbers: Array) -> None:
        if len(rows):
            keys = _between(rows[:, THREAD], self._sources[numbers, THREAD])
            self._done.add(np.stack([keys, rows[:, THREAD], rows[:, TIME], numbers], axis=1))

    def release(self, rows: Array, *, with_itself: bool) -> Array:
        """Record stores to flags; return a mask of those with a fence of their thread before.

        A store that releases `with_itself` has its own time as that of its fence.
        """
        fences, left = np.zeros((len(rows), MET + 1), dtype=np.int64), np.arange(len(rows))
        fenced = np.zeros(len(rows), dtype=bool)
        for fence in reversed(self._fences):
            at = _places(fence[:, THREAD], rows[left, THREAD])
            fences[left[at >= 0]] = fence[at[at >= 0]]
            fenced[left[at >= 0]] = True
            left = left[at < 0]
            if not len(left):
                break
        made = (rows[:, : MET + 1] if with_itself else fences)[fenced]
        while len(self._sources) < self._count + len(made):
            self._sources = np.concatenate([self._sources, np.zeros_like(self._sources)])
        self._sources[self._count : self._count + len(made)] = made
        numbers = range(self._count, self._count + len(made))
        self._last.update(zip(rows[fenced, PLACE].tolist(), numbers, strict=True))
        self._count += len(made)
        return fenced

    def order(self, thread: Array, time: Array, who: Array) -> Array:
        """Return a mask of accesses handed over to threads: `who` has the clocks of each."""
        found = np.zeros(len(who), dtype=bool)
        for entries, rows in self._done.each(_between(who[:, THREAD], thread), HANDOVERS):
            _, by, since, number = rows.T
            known = is_ordered(who[entries], by, since)
            known &= is_ordered(self._sources[number], thread[entries], time[entries])
            found[entries[known]] = True
            if found.all():
                break
        return found


def _between(one: Array, other: Array) -> Array:
    """Return a number for the blocks of two threads."""
    return np.asarray((one >> BLOCK_SHIFT) * MOST_BLOCKS + (other >> BLOCK_SHIFT))


def _places(ordered: Array, wanted: Array) -> Array:
    """Return the place of each number in an ordered array; -1 where it is not there."""
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[at] == wanted, at, -1)
