"""Streams and touches of sampled blocks that wait for others, and the end times of all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpusim.gpu.device import Device
from gpusim.launch.events import Skip
from gpusim.launch.prepared import Prepared
from gpusim.machine.loops import OnSkip
from gpusim.prediction.spinning.completion_times import CompletionTimes
from gpusim.prediction.spinning.grid import FEW_BLOCKS, WAVES, Grid
from gpusim.prediction.streams import (
    Classes,
    Recorder,
    TouchRecorder,
    nearest,
    refuse_missing_elements,
    without_results,
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
    for skips in (True, False):
        recorder = Recorder(prepared)
        touches = TouchRecorder(prepared)
        grid = Grid(
            without_results(prepared),
            device,
            at_once,
            l2,
            watched=_chosen(prepared.launch.blocks, at_once),
            observers=(recorder, touches),
            on_skip=_both(recorder, touches) if skips else None,
        )
        ends = grid.run(step_limit)
        sound = [block for block in grid.ended if block not in recorder.unsound]
        if sound:
            break
    streams = {block: recorder.streams[block] for block in sound}
    touched = {block: touches.stretches[block] for block in sound}
    classes = nearest(streams, prepared.launch.blocks)
    return RecordedBlocks(replace(classes, touched=touched), ends)


def _both(recorder: Recorder, touches: TouchRecorder) -> OnSkip:
    """Return a function that tells both recorders of skipped iterations."""

    def skip(left_out: Skip) -> None:
        recorder.skip(left_out)
        touches.skip(left_out)

    return skip


def _chosen(blocks: int, at_once: int) -> list[int]:
    """Return the numbers of the sampled blocks."""
    run = min(blocks, int(WAVES * at_once))
    few = min(run, FEW_BLOCKS)
    early = {k * few // EARLY for k in range(EARLY)}
    apart = {k * (run - 1) // (APART - 1) for k in range(APART)}
    return sorted({*range(min(run, NEIGHBOURS)), *early, *apart})
