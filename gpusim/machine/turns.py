"""Other orders of warps and blocks than the usual one: the last first, or any, by a seed.

Results that depend on the order of threads differ under them; a seed gives the same order again.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from gpusim.launch.grid import whole_number
from gpusim.typing import Array

FAIR_TURNS = 4


class Order(IntEnum):
    """Which warps run first: the usual ones, the first, the last, or any."""

    USUAL = 0
    FIRST = 1
    LAST = 2
    RANDOM = 3


class Turns:
    """Another order of warps: with a `seed` at random, else the last warp of the last block first.

    With `ascending` the first warp of the first block runs first. Every fourth turn goes to the
    warp that has waited longest.
    """

    def __init__(self, seed: int | None = None, *, ascending: bool = False) -> None:
        self._taken = 0
        self._sign = 1 if ascending else -1
        self._random = None
        self.order = Order.FIRST if ascending else Order.LAST
        if seed is not None:
            self._random = np.random.default_rng(whole_number(seed, "the order's seed", least=0))
            self.order = Order.RANDOM

    def first(self, last_run: Array, rows: Array) -> int:
        """Return the position of the split to run, given when each has last run, and its row."""
        self._taken += 1
        if self._taken % FAIR_TURNS == 0:
            return int(last_run.argmin())
        if self._random is None:
            return int((self._sign * rows).argmin())
        return self.drawn(len(last_run))

    def drawn(self, count: int) -> int:
        """Return a random number below a count."""
        assert self._random is not None
        return int(self._random.integers(count))

    def arranged(self, rows: Array) -> Array:
        """Return the positions of splits that run together, in the order of their accesses."""
        if self._random is None:
            return np.argsort(self._sign * rows, kind="stable")
        return self._random.permutation(len(rows))
