"""Branches and exits: they divide a split with divergent lanes."""

from __future__ import annotations

import numpy as np

from gpusim.errors import KernelFault
from gpusim.isa.ops import Instruction
from gpusim.machine import barrier, cluster_barrier, convergence, gathering, named_barrier
from gpusim.machine.context import Context
from gpusim.machine.generic_addressing import lanes_of
from gpusim.machine.group import Group
from gpusim.machine.value_divergence import agreed_words, diverge_by
from gpusim.program.jumps import ROW_BYTES
from gpusim.typing import Array

TRAPPED = "the kernel ends with a trap"


def source_branch(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Report a decision of the source; no instruction is run for it."""
    context.executed -= 1
    if context.listeners:
        taken = on & group.read(instruction.src[0])
        context.report(group, instruction, on, taken=taken)


def branch(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Send the lanes with a true predicate to the target, and divide divergent splits."""
    splits = context.batch.splits
    if on is group.mask:
        context.report(group, instruction, on, taken=on)
        splits.pc[group.which] = instruction.target
        return True
    ways = group.decided(on), group.decided(group.mask & ~on)
    context.report(group, instruction, on, taken=on)
    _send(context, group, instruction, on, ways)
    return True


def _send(
    context: Context,
    group: Group,
    instruction: Instruction,
    on: Array,
    ways: tuple[Array, Array],
) -> None:
    """Move some lanes to the target, others to the next instruction, by the `ways` of splits."""
    splits = context.batch.splits
    goes, stays = ways
    splits.pc[group.which] = np.where(goes, instruction.target, group.pc + 1)
    both = goes & stays
    if both.any():
        which = group.which[both]
        leaving = splits.take(which)
        leaving.mask = on[:, both]
        splits.pc[which] = group.pc + 1
        splits.remove(which, on[:, both])
        context.batch.splits = splits.extended(leaving)


def leave(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """End the lanes with a true predicate; lanes that waited for them may continue."""
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
        gathering.release(context)
        barrier.release(context)
        named_barrier.release(context)
        cluster_barrier.release(context)
    return True


def branch_if_apart(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Branch where not all live lanes that a mask names are here, or where they are together.

    Lanes with a false guard count as missing, instead of not branching: compilers make the guard
    false where lanes of a warp name different masks.
    """
    here = on if instruction.guard is not None else None
    apart = gathering.misses_lanes(group, group.read(instruction.src[0], np.uint32), here)
    if instruction.detail == "together":
        apart = ~apart
    context.report(group, instruction, on, taken=on & apart[None, :, None])
    context.batch.splits.pc[group.which] = np.where(apart, instruction.target, group.pc + 1)
    return True


def jump(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Jump to the address in a register, possibly different in each lane."""
    batch = context.batch
    rows = agreed_words(group, instruction, on) // np.uint32(ROW_BYTES)
    on = on[:1]
    places = np.array(instruction.detail, dtype=np.int64)
    nowhere = on & (np.append(places, -1)[np.minimum(rows, len(places))] < 0)
    if nowhere.any():
        return _end(context, group, instruction, on, nowhere, "a jump to an address without code")
    wanted = np.unique(rows[np.broadcast_to(on, rows.shape)])
    context.report(group, instruction, on, taken=on)
    splits, which = batch.splits, group.which
    splits.pc[which] = group.pc + 1
    for number, row in enumerate(wanted.tolist()):
        going = (on & (rows == row))[:1]
        some = going.any(axis=(0, 2))
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


def part(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Split lanes by their masks: lanes with the same mask continue together."""
    named = agreed_words(group, instruction, group.mask)
    context.report(group, instruction, on)
    diverge_by(group, named, group.pc + 1)
    return True


def trap(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Report the lanes that end the kernel with a trap; if others continue, they have exited."""
    return _end(context, group, instruction, on, on, TRAPPED)


def _end(
    context: Context, group: Group, instruction: Instruction, on: Array, at_fault: Array, what: str
) -> bool:
    """End the lanes with a true predicate, with a fault that names the first of those at fault."""
    tell_end(context, group, instruction, at_fault, what)
    return leave(context, group, instruction, on)


def tell_end(
    context: Context, group: Group, instruction: Instruction, at_fault: Array, what: str = TRAPPED
) -> None:
    """Report the lanes, if any, that end the kernel."""
    if at_fault.any():
        line = instruction.line
        block, thread, place = lanes_of(group).first(at_fault, np.zeros_like(at_fault), "", line)
        text = f"line {line}: {what} (block {block}, thread {thread})"
        context.fault(KernelFault(text, place))
