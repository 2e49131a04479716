"""Fences that threads have run: all threads at once run most of them, and few are asked for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpusim.checking.shadow import BLOCK_SHIFT, Array, Touch

FEW = 64  # threads of a step that are kept one by one


@dataclass(frozen=True)
class Knowledge:
    """A thread at a time: when its block's barrier opened last, and when its warp met."""

    time: int
    thread: int
    barrier: int
    warp_sync: int

    @property
    def block(self) -> int:
        """The thread's block."""
        return self.thread >> BLOCK_SHIFT

    def learns_from(self, thread: int, time: int) -> bool:
        """Return whether barriers order what a thread of its block did before this."""
        if thread == self.thread or time <= self.barrier:
            return True
        return thread >> 5 == self.thread >> 5 and time <= self.warp_sync


def everyone(touch: Touch) -> list[Knowledge]:
    """Return how things stand for each thread of a touch."""
    columns = np.broadcast_arrays(touch.thread, touch.barrier, touch.warp_sync)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Knowledge(touch.time, *row) for row in rows]


class Fences:
    """Fences of one scope, by thread."""

    def __init__(self) -> None:
        self._few: dict[int, list[Knowledge]] = defaultdict(list)
        self._many: list[tuple[Touch, Array]] = []

    def __bool__(self) -> bool:
        return bool(self._few or self._many)

    def add(self, touch: Touch) -> None:
        """Take note of threads that run a fence."""
        if len(touch.thread) > FEW:
            self._many.append((touch, np.argsort(touch.thread)))
            return
        for who in everyone(touch):
            self._few[who.thread].append(who)

    def of(self, thread: int) -> list[Knowledge]:
        """Return the fences that a thread has run, in order."""
        found = list(self._few.get(thread, ()))
        for touch, order in self._many:
            position = int(np.searchsorted(touch.thread, thread, sorter=order))
            if position < len(order) and touch.thread[order[position]] == thread:
                found += everyone(touch.take(order[position : position + 1]))
        return sorted(found, key=lambda who: who.time)
