"""Branches and exits: they divide a split whose lanes do not agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.errors import KernelFault
from gpusim.isa import Instruction
from gpusim.machine import barrier, convergence, warp
from gpusim.machine.context import Context
from gpusim.machine.group import Group, agreed

Array = np.ndarray[Any, Any]
ROW_BYTES = 16  # of machine code


def source_branch(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Tell what the source decides here; no instruction is run for it."""
    context.executed -= 1
    if context.listeners:
        taken = on & group.read(instruction.src[0])
        context.report(group, instruction, on, taken=taken)


def branch(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Send the lanes whose guard is true to the target, and part splits that disagree."""
    splits = context.batch.splits
    if on is group.mask:
        context.report(group, instruction, on, taken=on)
        splits.pc[group.which] = instruction.target
        return True
    goes, stays = group.decided(on), group.decided(group.mask & ~on)
    context.report(group, instruction, on, taken=on)
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
    context.report(group, instruction, on)
    splits.pc[group.which] = group.pc + 1
    some = leave & stay
    if some.any():
        splits.remove(group.which[some], on[:, some])
    context.batch.splits = splits.without(group.which[leave & ~stay])
    if leave.any():
        convergence.release(context, group.rows)
        warp.release(context)
        barrier.release(context)
    return True


def branch_if_apart(
    context: Context, group: Group, instruction: Instruction, on: Array
) -> bool | None:
    """Branch where not all live lanes that a mask names are here."""
    apart = warp.misses_lanes(group, group.read(instruction.src[0], np.uint32))
    taken = on & apart[None, :, None]
    context.report(group, instruction, on, taken=taken)
    if not apart.any():
        return None
    context.batch.splits.pc[group.which] = np.where(apart, instruction.target, group.pc + 1)
    return True


def jump(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Go on where a register says: at an address, which lanes may disagree about."""
    batch = context.batch
    rows = np.broadcast_to(group.read(instruction.src[0], np.uint32), group_shape(group))
    rows = rows // np.uint32(ROW_BYTES)
    places = np.array(instruction.detail, dtype=np.int64)
    context.report(group, instruction, on, taken=on)
    wanted = np.unique(rows[np.broadcast_to(on, rows.shape)])
    agreed(np.where(on, rows, 0))
    splits, which = batch.splits, group.which
    splits.pc[which] = group.pc + 1
    for number, row in enumerate(wanted.tolist()):
        going = (on & (rows == row))[:1]
        some = going.any(axis=(0, 2))
        if row >= len(places):
            raise KernelFault(f"line {instruction.line}: a jump to where there is no code")
        if number == 0 and some.all() and (going == group.mask[:1]).all():
            splits.pc[which] = places[row]
            return True
        leaving = splits.take(which[some])
        leaving.mask = going[:, some]
        leaving.pc = np.full(int(some.sum()), places[row])
        splits.remove(which[some], going[:, some])
        splits = splits.extended(leaving)
    batch.splits = splits.without(which[~splits.mask[:, which].any(axis=(0, 2))])
    return True


def group_shape(group: Group) -> tuple[int, ...]:
    """Return the shape of what lanes of a group hold."""
    return (len(group.mask), len(group.rows), 32)
