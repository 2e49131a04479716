"""Streams and touches of sampled blocks that wait for others, and the end times of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.spinning.grid import FEW_BLOCKS, WAVES, Grid
from gpusim.prediction.streams import (
    Classes,
    Recorder,
    TouchRecorder,
    nearest,
    refuse_missing_elements,
    with_own_results,
)
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


# Numbers of sampled blocks: neighbours, blocks run in any case, and blocks far apart.
NEIGHBOURS, EARLY, APART = 2, 3, 4


@dataclass(frozen=True)
class RecordedBlocks:
    """The classes of a grid's blocks, and the end times of all."""

    classes: Classes
    ends: CompletionTimes


def recorded_blocks(
    prepared: Prepared, device: Device, resident: int, l2: str, step_limit: int
) -> RecordedBlocks:
    """Return classes and end times of blocks that wait for others.

    An SM of the device holds `resident` blocks at a time; `l2` is "cold" or "warm". Raises
    NoProgressError for a deadlock, InputError where control flow or addresses depend on an array
    without elements.
    """
    refuse_missing_elements(prepared)
    at_once = resident * device.gpu.sms
    recorder, touches = Recorder(prepared, folds=True), TouchRecorder(prepared)
    grid = Grid(
        with_own_results(prepared),
        device,
        at_once,
        l2,
        watched=_chosen(prepared.launch.blocks, at_once),
        observers=(recorder, touches),
    )
    ends = grid.run(step_limit)
    streams = {block: recorder.streams[block] for block in grid.ended}
    touched = {block: touches.stretches[block] for block in grid.ended}
    classes = nearest(streams, prepared.launch.blocks)
    return RecordedBlocks(replace(classes, touched=touched), ends)


def _chosen(blocks: int, at_once: int) -> list[int]:
    """Return the numbers of the sampled blocks."""
    run = min(blocks, int(WAVES * at_once))
    few = min(run, FEW_BLOCKS)
    early = {k * few // EARLY for k in range(EARLY)}
    apart = {k * (run - 1) // (APART - 1) for k in range(APART)}
    return sorted({*range(min(run, NEIGHBOURS)), *early, *apart})
