"""Lanes of a warp together: shuffles and votes, and waiting for the lanes of a mask."""

from __future__ import annotations

import numpy as np

from gpusim.isa import lanes
from gpusim.isa.lanes import LANES
from gpusim.isa.ops import OPS, Instruction
from gpusim.machine import gathering, participation
from gpusim.machine.context import Context
from gpusim.machine.exchanges import exchanged
from gpusim.machine.group import Group
from gpusim.machine.value_divergence import agreed_words, diverge_by
from gpusim.typing import Array


def exchange(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Exchange values between lanes: all active ones, or the lanes of a mask once they arrive."""
    operands, mask = group.sources(instruction), None
    if OPS[instruction.op].checks_mask:
        mask = operands.pop(0)
        if gathering.waits(context, group, mask):
            return True
    found = exchanged(instruction, mask, operands, on)
    if mask is not None:
        participation.check(context, group, instruction, mask, on, found.sources)
    for register, value in zip(instruction.dst, found.values, strict=True):
        group.write(register, value, on)
    context.report(group, instruction, on, mask=mask, sources=found.sources)
    return False


def warpsync(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Block the group until the lanes in its mask arrive."""
    op, mask = OPS[instruction.op], group.read(instruction.src[0], np.uint32)
    if gathering.gives_way(context, group):
        return True
    if op.is_replayed and not group.is_gathered:
        _report_missing(context, group, instruction, mask, on)
    if gathering.waits(context, group, mask):
        return True
    if op.checks_mask:
        participation.check(context, group, instruction, mask, on)
    context.report(group, instruction, on, mask=mask)
    return False


def _report_missing(
    context: Context, group: Group, instruction: Instruction, mask: Array, on: Array
) -> None:
    """Report an instruction for the splits that wait: it is issued again when all are there."""
    misses = gathering.misses_lanes(group, mask)
    if misses.any():
        waiting = Group(group.batch, group.which[misses])
        waiting.pc = group.pc
        context.report(waiting, instruction, waiting.mask & on[:, misses])


def elect(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set the number of the lowest active lane, and in each lane whether it is elected.

    Seen on an H200; PTX leaves the choice of `elect.sync` open.
    """
    wants_number, wants_verdict = instruction.detail
    first = on.argmax(axis=2, keepdims=True)
    results = ((first.astype(np.uint32),) if wants_number else ()) + (
        (first == LANES,) if wants_verdict else ()
    )
    for register, result in zip(instruction.dst, results, strict=True):
        group.write(register, result, on)
    context.report(group, instruction, on)


def transpose(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Exchange the rows and columns of a matrix of 8 by 8 halves of words."""
    value = group.read(instruction.src[0], np.uint32)
    group.write(instruction.dst[0], lanes.transposed(value), on)
    context.report(group, instruction, on)


def collect(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Gather the lanes in each lane's mask, one group for each different mask."""
    named = agreed_words(group, instruction, group.mask)
    least = np.where(group.mask, named, np.uint32(0xFFFFFFFF)).min(axis=2)
    if (least == np.where(group.mask, named, np.uint32(0)).max(axis=2)).all():
        return warpsync(context, group, instruction, on)
    diverge_by(group, named, group.pc)
    context.executed -= 1
    return True


def differs(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Test whether each lane's value differs from the first active lane's, or a source is true."""
    value = group.read(instruction.src[0], np.uint32)
    found = value != _of_first(value, on)
    for register in instruction.src[1:]:
        found = found | group.read(register, np.bool_)
    group.write(instruction.dst[0], found, on)
    context.report(group, instruction, on)


def first_lane(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Give all lanes the value of the first one with a true predicate, or a false one, if any."""
    value, asked = group.sources(instruction)
    lanes_asked = on & (~asked if instruction.detail else asked)
    has_any = on & lanes_asked.any(axis=2, keepdims=True)
    group.write(instruction.dst[0], _of_first(value, lanes_asked), has_any)
    context.report(group, instruction, on)


def _of_first(value: Array, on: Array) -> Array:
    """Return the value of the first lane that is on."""
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, on.shape))
    first = np.broadcast_to(on, value.shape).argmax(axis=2, keepdims=True)
    return np.asarray(np.take_along_axis(value, first, axis=2))
