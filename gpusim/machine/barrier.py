"""Barriers of all warps of a block, and reductions of predicates at barriers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gpusim.isa.ops import Instruction
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.state import AT_BARRIER, READY
from gpusim.typing import Array

# The result of a barrier for its threads, from the counts of true predicates and of threads.
RESULTS: Mapping[str, Callable[[Array, Array], Array]] = {
    "count": lambda yes, _: yes,
    "and": lambda yes, every: yes == every,
    "or": lambda yes, _: yes > 0,
}


def barrier(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Block the active lanes until all threads of their blocks arrive."""
    group.decided(on)  # all blocks of the batch have to do the same
    context.report(group, instruction, on)
    held(context, group, on, AT_BARRIER)
    release(context)
    return True


def held(context: Context, group: Group, on: Array, state: int) -> None:
    """Block the active lanes; the rest of the group continues."""
    splits = context.batch.splits
    waits, goes = group.decided(on), group.decided(group.mask & ~on)
    splits.pc[group.which] = np.where(waits, group.pc, group.pc + 1)
    splits.state[group.which[waits]] = state
    both = waits & goes
    if both.any():
        which = group.which[both]
        going = splits.take(which)
        going.mask = going.mask & ~on[:, both]
        going.pc = np.full(len(which), group.pc + 1)
        going.state = np.full(len(which), READY)
        splits.remove(which, ~on[:, both])
        context.batch.splits = splits.extended(going)


def release(context: Context) -> None:
    """Release the blocks with every live lane at a barrier."""
    splits, placement = context.batch.splits, context.batch.placement
    arrived = splits.state == AT_BARRIER
    if not arrived.any():
        return
    if placement.folded:
        complete = arrived if arrived.all() else np.zeros_like(arrived)
    else:
        block = splits.row // placement.warps_per_block
        missing = np.bincount(block[~arrived], minlength=len(placement.blocks)) > 0
        complete = arrived & ~missing[block]
    which = np.flatnonzero(complete)
    for pc in sorted(set(splits.pc[which].tolist())):  # np.unique imports numpy.ma: 20 ms
        instruction = context.instructions[pc]
        if instruction.dst:
            here = Group(context.batch, which[splits.pc[which] == pc])
            _reduce(here, instruction)
    if len(which):
        context.tell_opened(splits.row[which], splits.pc[which])
    splits.pc[which] += 1
    splits.state[which] = READY


def _reduce(group: Group, instruction: Instruction) -> None:
    """Give every thread the reduction of the predicates of its block's threads."""
    placement = group.batch.placement
    predicate = group.read(instruction.src[0])
    yes = np.count_nonzero(group.mask & predicate, axis=2)
    every = np.broadcast_to(np.count_nonzero(group.mask, axis=2), yes.shape)
    if placement.folded:
        totals = [count.sum(axis=1)[:, None, None] for count in (yes, every)]
    else:
        block = group.rows // placement.warps_per_block
        totals = [np.bincount(block, c[0])[block].reshape(1, -1, 1) for c in (yes, every)]
    result = RESULTS[str(instruction.detail)](*totals)
    group.write(instruction.dst[0], result.astype(instruction.dtype or np.int32), group.mask)
    group.pc += 1
    group.settle()
