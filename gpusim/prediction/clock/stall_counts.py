"""Stall counts: cycles after each instruction until its warp can issue the next one.

Compilers write them into the machine code. They hold for straight-line execution; a result of
variable latency is awaited in addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.gpu.device import Device
from gpusim.isa.ops import OPS, Program
from gpusim.prediction.arithmetic.ticks import TICKS
from gpusim.prediction.clock.issue import issues
from gpusim.prediction.clock.step_builder import steps_of
from gpusim.prediction.streams.instruction_table import COLUMNS
from gpusim.prediction.streams.stream import WarpStream


@dataclass(frozen=True)
class StallCount:
    """Cycles until the next instruction may issue; it `waits` if it also needs a result."""

    cycles: float
    waits: bool


def stall_counts(program: Program, device: Device) -> list[StallCount | None]:
    """Return each instruction's stall count on a device, None for pseudo-instructions."""
    issued = [pc for pc, i in enumerate(program.instructions) if OPS[i.op].issued]
    rows = issues(program, device)
    found: list[StallCount | None] = [None] * len(rows)
    for pc in issued:  # after a barrier some issue before the warp is held, as part of its step
        found[pc] = StallCount(rows[pc].cost.slot / TICKS, False)
    for step in steps_of(_straight_on(issued), rows).steps:
        found[step.pc] = StallCount(step.gap / TICKS, bool(step.needs))
    return found


def _straight_on(pcs: list[int]) -> WarpStream:
    """Return the stream of a warp in straight-line execution without memory accesses."""
    columns: dict[str, Any] = {name: np.zeros(len(pcs), dtype=np.int64) for name in COLUMNS}
    columns["pc"] = np.array(pcs, dtype=np.int64)
    return WarpStream.of(**columns)
