"""Stall counts: how long after each instruction its warp can issue the next one.

Compilers write them into the machine code. They hold where a program runs straight on; what
waits for a result of variable latency waits for that as well.
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
from gpusim.prediction.streams.stream import COLUMNS, WarpStream


@dataclass(frozen=True)
class StallCount:
    """Cycles until the next instruction may issue; it `waits` where it needs a result as well."""

    cycles: float
    waits: bool


def stall_counts(program: Program, device: Device) -> list[StallCount | None]:
    """Return each instruction's stall count on a device, None for what is never issued."""
    issued = [pc for pc, i in enumerate(program.instructions) if OPS[i.op].issued]
    rows = issues(program, device)
    found: list[StallCount | None] = [None] * len(rows)
    for pc in issued:  # behind a barrier some issue before the warp is held, as part of its step
        found[pc] = StallCount(rows[pc].cost.slot / TICKS, False)
    for step in steps_of(_straight_on(issued), rows).steps:
        found[step.pc] = StallCount(step.gap / TICKS, bool(step.needs))
    return found


def _straight_on(pcs: list[int]) -> WarpStream:
    """Return the stream of a warp that jumps nowhere and touches nothing."""
    columns: dict[str, Any] = {name: np.zeros(len(pcs), dtype=np.int64) for name in COLUMNS}
    columns["pc"] = np.array(pcs, dtype=np.int64)
    return WarpStream(**columns)
