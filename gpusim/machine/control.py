"""Branches and exits: they divide a split whose lanes do not agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.isa import Instruction
from gpusim.machine import barrier, convergence, warp
from gpusim.machine.group import Group
from gpusim.machine.kinds import runs

if TYPE_CHECKING:
    from gpusim.machine.interpreter import Interpreter

Array = np.ndarray[Any, Any]


@runs("source_branch")
def _source_branch(machine: Interpreter, group: Group, instruction: Instruction, on: Array) -> None:
    """Tell what the source decides here; no instruction is run for it."""
    machine.executed -= 1
    if machine.observers:
        taken = on & group.read(instruction.src[0])
        machine.tell(group, instruction, on, taken=taken)


@runs("branch")
def _branch(machine: Interpreter, group: Group, instruction: Instruction, on: Array) -> bool:
    splits = machine.batch.splits
    if instruction.guard is None:
        machine.tell(group, instruction, on, taken=on)
        splits.pc[group.which] = instruction.target
        return True
    goes, stays = group.decided(on), group.decided(group.mask & ~on)
    machine.tell(group, instruction, on, taken=on)
    splits.pc[group.which] = np.where(goes, instruction.target, group.pc + 1)
    both = goes & stays
    if both.any():
        which = group.which[both]
        leaving = splits.take(which)
        leaving.mask = on[:, both]
        splits.pc[which] = group.pc + 1
        splits.remove(which, on[:, both])
        machine.batch.splits = splits.extended(leaving)
    return True


@runs("exit")
def _exit(machine: Interpreter, group: Group, instruction: Instruction, on: Array) -> bool:
    splits = machine.batch.splits
    leave, stay = group.decided(on), group.decided(group.mask & ~on)
    machine.tell(group, instruction, on)
    splits.pc[group.which] = group.pc + 1
    some = leave & stay
    if some.any():
        splits.remove(group.which[some], on[:, some])
    machine.batch.splits = splits.without(group.which[leave & ~stay])
    if leave.any():
        convergence.release(machine)
        warp.release(machine)
        barrier.release(machine)
    return True
