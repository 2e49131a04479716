"""When blocks of a grid end that wait for each other: of some that were run, and of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpusim.prediction.arithmetic.ticks import TICKS

Array = np.ndarray[Any, Any]

EVEN = 0.01  # part of its time by which a quarter of the blocks may differ from another


def is_even(ends: Sequence[int]) -> bool:
    """Return whether blocks end one after the other, at a rate that stays: a chain.

    The third quarter of them takes as long as the last, and as long as the second.
    """
    marks = [ends[len(ends) * k // 4 - 1] for k in (1, 2, 3, 4)]
    second, third, last = (later - before for before, later in pairwise(marks))
    return abs(third - last) <= EVEN * last and abs(second - last) <= EVEN * last and last > 0


@dataclass(frozen=True)
class Ends:
    """The ticks `at` which the blocks ended that were run, of so many `blocks` in all.

    `at_once` blocks run at a time.
    """

    at: Array
    blocks: int
    at_once: int

    @property
    def cycles_a_block(self) -> float:
        """Cycles between two ends, in the long run.

        It is found between blocks as many ends apart as run at a time, for these may begin and end
        together; where no more were run, between the halves of those that were.
        """
        ends = np.sort(self.at)
        apart = self.at_once if len(ends) > self.at_once else len(ends) // 2
        if not apart:
            return 0.0
        later, before = ends[apart:], ends[: len(ends) - apart]
        return float((later - before).mean()) / apart / TICKS

    @property
    def cycles(self) -> float:
        """When the last block ends, if those that were not run go on like those that were."""
        return float(self.at.max()) / TICKS + (self.blocks - len(self.at)) * self.cycles_a_block
