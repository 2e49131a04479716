"""Numbered barriers, for some warps of a block: waiting (bar.sync) and arriving (bar.arrive).

A barrier opens when as many threads have come as it is given, or all of the block where it is given
none; a warp that arrives as a whole counts for 32 threads (PTX ISA, bar).
"""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction
from gpusim.launch.grid import WARP_SIZE
from gpusim.machine.barrier import barrier, held
from gpusim.machine.context import Context
from gpusim.machine.group import Group, agreed
from gpusim.machine.state import AT_NAMED_BARRIER, NAMED_BARRIERS, READY, Batch
from gpusim.typing import Array

_MOST_NUMBER = NAMED_BARRIERS - 1


def sync(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Block the active lanes until enough threads arrive."""
    number, wanted = asked(group, instruction)
    if not number.any() and not wanted.any():
        return barrier(context, group, instruction, on)
    context.report(group, instruction, on)
    held(context, group, on, AT_NAMED_BARRIER)
    release(context)
    return True


def arrive(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Count the arriving lanes, without waiting."""
    number, wanted = asked(group, instruction)
    came = group.decided(on)
    context.report(group, instruction, on)
    context.tell_arrived(number)
    arrivals, block = context.batch.arrivals, _blocks(context.batch, group.rows)
    threads = np.where(came, _threads(context.batch, group.which), 0)
    np.add.at(arrivals, (number, block), threads)
    release(context)
    full = (arrivals[number, block] >= wanted) & (wanted > 0)
    arrivals[number[full], block[full]] = 0  # without waiting threads


def release(context: Context) -> None:
    """Release the splits at barriers with enough threads."""
    batch, splits = context.batch, context.batch.splits
    waiting = np.flatnonzero(splits.state == AT_NAMED_BARRIER)
    if not len(waiting):
        return
    number, wanted = np.zeros_like(waiting), np.zeros_like(waiting)
    for pc in np.unique(splits.pc[waiting]):
        here = splits.pc[waiting] == pc
        group = Group(batch, waiting[here])
        number[here], wanted[here] = asked(group, context.instructions[int(pc)])
    block = _blocks(batch, splits.row[waiting])
    came = batch.arrivals.copy()
    np.add.at(came, (number, block), _threads(batch, waiting))
    every = WARP_SIZE * np.bincount(_blocks(batch, np.unique(splits.row)), minlength=came.shape[1])
    open_now = came[number, block] >= np.where(wanted > 0, wanted, every[block])
    batch.arrivals[number[open_now], block[open_now]] = 0
    going = waiting[open_now]
    if len(going):
        named = number[open_now], wanted[open_now], splits.mask[0].take(going, axis=0)
        context.tell_opened(splits.row[going], splits.pc[going], *named)
    splits.pc[going] += 1
    splits.state[going] = READY


def asked(group: Group, instruction: Instruction) -> tuple[Array, Array]:
    """Return each split's barrier number and its count of threads."""
    shape = (len(group.mask), len(group.rows), WARP_SIZE)
    read = [group.read(register, np.uint32) for register in instruction.src]
    if instruction.detail == "packed":
        read = [read[0] & np.uint32(_MOST_NUMBER), read[0] >> np.uint32(16)]
    values = [np.where(group.mask, np.broadcast_to(one, _over(one, shape)), 0) for one in read]
    number, wanted = (agreed(value.max(axis=2)).astype(np.int64) for value in values)
    return number, wanted


def _over(value: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(value.shape, shape)


def _blocks(batch: Batch, rows: Array) -> Array:
    """Return the block of each row as `arrivals` count them."""
    if batch.placement.folded:
        return np.zeros_like(rows)
    return np.asarray(rows // batch.placement.warps_per_block)


def _threads(batch: Batch, which: Array) -> Array:
    """Return the count of threads for each split: 32 for all remaining lanes of a warp."""
    splits = batch.splits
    lanes = np.count_nonzero(splits.mask[0, which], axis=1)
    alone = np.bincount(splits.row)[splits.row[which]] == 1
    return np.where(alone, WARP_SIZE, lanes)
