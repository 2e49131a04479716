"""Branches and exits: they divide a split whose lanes do not agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.isa import Instruction
from gpusim.machine import barrier, convergence, warp
from gpusim.machine.context import Context
from gpusim.machine.group import Group

Array = np.ndarray[Any, Any]


def source_branch(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Tell what the source decides here; no instruction is run for it."""
    context.executed -= 1
    if context.listeners:
        taken = on & group.read(instruction.src[0])
        context.tell(group, instruction, on, taken=taken)


def branch(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Send the lanes whose guard is true to the target, and part splits that disagree."""
    splits = context.batch.splits
    if instruction.guard is None:
        context.tell(group, instruction, on, taken=on)
        splits.pc[group.which] = instruction.target
        return True
    goes, stays = group.decided(on), group.decided(group.mask & ~on)
    context.tell(group, instruction, on, taken=on)
    splits.pc[group.which] = np.where(goes, instruction.target, group.pc + 1)
    both = goes & stays
    if both.any():
        which = group.which[both]
        leaving = splits.take(which)
        leaving.mask = on[:, both]
        splits.pc[which] = group.pc + 1
        splits.remove(which, on[:, both])
        context.batch.splits = splits.extended(leaving)
    return True


def leave(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """End the lanes whose guard is true; those that waited for them may go on."""
    splits = context.batch.splits
    leave, stay = group.decided(on), group.decided(group.mask & ~on)
    context.tell(group, instruction, on)
    splits.pc[group.which] = group.pc + 1
    some = leave & stay
    if some.any():
        splits.remove(group.which[some], on[:, some])
    context.batch.splits = splits.without(group.which[leave & ~stay])
    if leave.any():
        convergence.release(context)
        warp.release(context)
        barrier.release(context)
    return True
