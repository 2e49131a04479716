"""Streams and touches of sampled blocks that wait for others, and the end times of all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpusim.gpu.device import Device
from gpusim.launch.prepared import Prepared
from gpusim.prediction.spinning.completion_times import CompletionTimes
from gpusim.prediction.spinning.grid import FEW_BLOCKS, WAVES, Grid
from gpusim.prediction.streams import (
    Classes,
    Recorder,
    TouchRecorder,
    nearest,
    refuse_missing_elements,
    with_own_results,
)

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
