"""Steps of a check, written down where warps make them: lanes, and operands as they lie there.

Warps take turns (`turns.py`): what the splits of a group do in one pass is one step of all.
"""

from __future__ import annotations

from gpusim.machine.warps.state import IN, LAUNCH, NOW, OPERAND_BYTES, Warp
from gpusim.machine.warps.steps import take_steps
from gpusim.wasm.memory import Record, copy, u32

STEP_BYTES = 24
OPENED = 1 << 30  # in place of a pc: a split at a block's barrier that opens


class CheckedStep(Record):
    """An instruction of a split in a pass of its group: the active lanes, and those that are on.

    The values of its first operands lie at `operands`.
    """

    turn: u32
    pc: u32
    row: u32
    active: u32
    on: u32
    operands: u32


def check(warp: Warp, pc: u32, active: u32, on: u32, operands: u32) -> None:
    """Write a step down, with so many operands."""
    if (NOW.runs >= NOW.runs_full) | (NOW.details >= NOW.details_full):
        take_steps()
    step = CheckedStep(NOW.runs)
    step.turn = NOW.passes
    step.pc = pc
    step.row = warp.row
    step.active = active
    step.on = on
    step.operands = NOW.details
    copy(NOW.details, IN, OPERAND_BYTES * operands)
    NOW.runs += STEP_BYTES
    NOW.details += OPERAND_BYTES * operands


def opens(warp: Warp) -> None:
    """Write down the splits of a block whose barrier opens, with the block of code of each."""
    for _ in range(LAUNCH.warps):
        for number in range(warp.splits):
            split = warp.split(number)
            check(warp, OPENED | split.block, split.lanes, split.lanes, 0)
        warp = Warp(warp.address + LAUNCH.warp_bytes)
