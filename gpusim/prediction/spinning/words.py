"""Words of global memory through which blocks meet: who waits for one, when an atomic is served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Wake = Callable[[Array, int], None]  # warps by their rows, at a time


class Words:
    """The words that all batches share; atomics on one are served so many ticks `apart`."""

    def __init__(self, apart: int) -> None:
        self._apart = apart
        self._free: dict[int, int] = {}
        self._waiting: dict[int, list[tuple[Wake, Array]]] = {}

    def park(self, wake: Wake, rows: Array, addresses: Array, on: Array) -> None:
        """Let warps wait until a word is written that one of their lanes asks for.

        `addresses` and `on` are shaped (warps, 32).
        """
        asked = addresses[on]
        of = np.broadcast_to(rows[:, None], on.shape)[on]
        for address in np.unique(asked).tolist():
            self._waiting.setdefault(address, []).append((wake, np.unique(of[asked == address])))

    def written(self, addresses: Array, at: Array) -> None:
        """Wake who waits for what is written at a time, the last where it is several times."""
        if not self._waiting:
            return
        waited_for = np.array(list(self._waiting))
        for address in np.intersect1d(addresses, waited_for).tolist():
            last = int(at[addresses == address].max())
            for wake, rows in self._waiting.pop(address):
                wake(rows, last)

    def found(self, addresses: Array, on: Array, at: Array, later: int) -> Array:
        """Return when warps that ask at a time are served: later, where atomics go on till then.

        Who asks in between is told too early, and asks once more.
        """
        busy = np.array(
            [
                max((self._free.get(word, 0) for word in set(asked[lanes].tolist())), default=0)
                for asked, lanes in zip(addresses, on, strict=True)
            ]
        )
        return np.where(busy > at, busy + later, at)

    def served(self, addresses: Array, on: Array, at: Array) -> Array:
        """Return when the atomics of some warps are served that come at a time.

        `addresses` and `on` are shaped (warps, 32). The word counts that most lanes of a warp mean.
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
