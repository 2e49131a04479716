"""End times of blocks that wait for each other, extrapolated from the simulated ones to all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.typing import Array

EVEN = 0.01  # tolerated relative difference between the durations of quarters of the blocks


def is_even(ends: Sequence[int]) -> bool:
    """Return whether blocks end one after the other at a steady rate: a chain.

    The second, third and last quarter of them take equally long within EVEN.
    """
    marks = [ends[len(ends) * k // 4 - 1] for k in (1, 2, 3, 4)]
    second, third, last = (later - before for before, later in pairwise(marks))
    return abs(third - last) <= EVEN * last and abs(second - last) <= EVEN * last and last > 0


@dataclass(frozen=True)
class CompletionTimes:
    """End times `at` (ticks) of the simulated blocks, of `blocks` in the grid.

    `at_once` blocks are resident on the device at a time.
    """

    at: Array
    blocks: int
    at_once: int

    @property
    def cycles_a_block(self) -> float:
        """Cycles between two ends in steady state.

        Measured between ends `at_once` apart, because blocks of one wave may begin and end
        together; with fewer simulated blocks, between the two halves of them.
        """
        ends = np.sort(self.at)
        apart = self.at_once if len(ends) > self.at_once else len(ends) // 2
        if not apart:
            return 0.0
        later, before = ends[apart:], ends[: len(ends) - apart]
        return float((later - before).mean()) / apart / TICKS

    @property
    def cycles(self) -> float:
        """End of the last block in cycles, with the steady rate carried on to the rest."""
        return float(self.at.max()) / TICKS + (self.blocks - len(self.at)) * self.cycles_a_block
