"""Words of global memory through which blocks communicate: parked polls and atomic throughput."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpusim.typing import Array

Wake = Callable[[Array, int], None]  # warps by their rows, at a time


class Words:
    """The words shared by all batches; atomics on one are served `apart` ticks apart."""

    def __init__(self, apart: int) -> None:
        self._apart = apart
        self._free: dict[int, int] = {}
        self._waiting: dict[int, list[tuple[Wake, Array]]] = {}

    def park(self, wake: Wake, rows: Array, addresses: Array, on: Array) -> None:
        """Park warps until a word polled by one of their lanes is written.

        `addresses` and `on` are shaped (warps, 32).
        """
        asked = addresses[on]
        of = np.broadcast_to(rows[:, None], on.shape)[on]
        for address in np.unique(asked).tolist():
            self._waiting.setdefault(address, []).append((wake, np.unique(of[asked == address])))

    def written(self, addresses: Array, at: Array) -> None:
        """Wake the warps parked on written words, at the time of the last write to each."""
        if not self._waiting:
            return
        waited_for = np.array(list(self._waiting))
        for address in np.intersect1d(addresses, waited_for).tolist():
            last = int(at[addresses == address].max())
            for wake, rows in self._waiting.pop(address):
                wake(rows, last)

    def found(self, addresses: Array, on: Array, at: Array, later: int) -> Array:
        """Return when the polls of warps are served: `later`, behind atomics still in progress.

        A poll in between would be answered too early and repeated.
        """
        if self._free.keys().isdisjoint(addresses[on].tolist()):
            return at
        busy = np.array(
            [
                max((self._free.get(word, 0) for word in set(asked[lanes].tolist())), default=0)
                for asked, lanes in zip(addresses, on, strict=True)
            ]
        )
        return np.where(busy > at, busy + later, at)

    def served(self, addresses: Array, on: Array, at: Array) -> Array:
        """Return when the atomics of warps that arrive at a time are served.

        `addresses` and `on` are shaped (warps, 32). The word with the most lanes of a warp counts.
        """
        begins = at.copy()
        for place in np.argsort(at, kind="stable").tolist():
            asked, passes = np.unique(addresses[place][on[place]], return_counts=True)
            if len(asked):
                most = int(passes.argmax())
                word = int(asked[most])
                begins[place] = max(int(at[place]), self._free.get(word, 0))
                self._free[word] = int(begins[place]) + int(passes[most]) * self._apart
        return begins
