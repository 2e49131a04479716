"""Lanes of a warp together: shuffles and votes, and waiting for the lanes of a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim.isa import lanes
from gpusim.isa.lanes import LANE_BITS, LANES
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.machine import participation
from gpusim.machine.context import Context
from gpusim.machine.group import Group, agreed
from gpusim.machine.state import AT_WARP, READY, union_of_runs
from gpusim.machine.value_divergence import agreed_words, diverge_by
from gpusim.program.memoisation import once

Array = np.ndarray[Any, Any]
# Instructions that only wait for lanes, by kind: equal numbers correspond, at any pc.
# Seen on an H200 for collective ones around nothing; around a shuffle or a barrier, none does here.
CORRESPONDING = {"warpsync": -1, "collect": -2}


def _masked(group: Group, instruction: Instruction) -> tuple[Array | None, list[Array]]:
    """Return the mask that an instruction checks, if it has one, and its other sources."""
    sources = group.sources(instruction)
    return (sources[0], sources[1:]) if OPS[instruction.op].checks_mask else (None, sources)


def shuffle(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Give each lane the value of its source lane: 0 from an inactive one that no mask rules out.

    The results are the "value", and the "inside" of `lanes.shuffle_sources`.
    """
    mask, (value, lane, limits) = _masked(group, instruction)
    if mask is not None and _waits(context, group, mask):
        return True
    mode, *results = instruction.detail
    source, inside = lanes.shuffle_sources(mode, lane, limits)
    if mask is not None:
        participation.check(context, group, instruction, mask, on, source)
    elif not on.all():
        value = np.where(on, value, value.dtype.type(0))
    for register, result in zip(instruction.dst, results, strict=False):
        group.write(register, inside if result == "inside" else lanes.taken(value, source), on)
    gives_value = "value" in results
    context.report(group, instruction, on, mask=mask, sources=source if gives_value else None)
    return False


def vote(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Give each lane the vote over the predicates of the lanes, or of its mask's lanes."""
    op, sources = OPS[instruction.op], list(instruction.src)
    mask = group.read(sources.pop(0), np.uint32) if op.checks_mask else None
    predicate = group.read(sources[0], np.bool_) if sources else None
    if mask is not None:
        if _waits(context, group, mask):
            return True
        participation.check(context, group, instruction, mask, on)
    ballots = lanes.Ballots(on, predicate, mask)
    for register, result in zip(instruction.dst, instruction.detail, strict=True):
        group.write(register, lanes.VOTES[result](ballots), on)
    context.report(group, instruction, on, mask=mask)
    return False


def match(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Give each lane the lanes with its value, among all or among its mask's lanes."""
    mask, words = _masked(group, instruction)
    if mask is not None:
        if _waits(context, group, mask):
            return True
        participation.check(context, group, instruction, mask, on)
    matches = lanes.Matches(words, on, mask)
    for register, result in zip(instruction.dst, instruction.detail, strict=True):
        group.write(register, lanes.MATCHES[result](matches), on)
    context.report(group, instruction, on)
    return False


def warpsync(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Hold the group until the lanes in its mask arrive."""
    op, mask = OPS[instruction.op], group.read(instruction.src[0], np.uint32)
    if _gives_way(context, group):
        return True
    if op.is_replayed:
        _report_missing(context, group, instruction, mask, on)
    if _waits(context, group, mask):
        return True
    if op.checks_mask:
        participation.check(context, group, instruction, mask, on)
    context.report(group, instruction, on, mask=mask)
    return False


def _report_missing(
    context: Context, group: Group, instruction: Instruction, mask: Array, on: Array
) -> None:
    """Report an instruction for the splits that wait: it is issued again when all are there."""
    misses = misses_lanes(group, mask)
    if misses.any():
        waiting = Group(group.batch, group.which[misses])
        waiting.pc = group.pc
        context.report(waiting, instruction, waiting.mask & on[:, misses])


def elect(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Give the number of the lowest active lane, and tell each lane whether it is elected.

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


def _named(group: Group, mask: Array) -> Array:
    """Return the lanes that a mask operand names, shaped (copies, splits, 32)."""
    bits = mask.astype(np.uint32)
    if bits.shape[2] > 1:
        named = np.where(group.mask, bits, np.uint32(0))
        bits = np.bitwise_or.reduce(named, axis=2, keepdims=True)
    return np.broadcast_to((bits & LANE_BITS) != 0, (len(bits), len(group.rows), 32))


def _waits(context: Context, group: Group, mask: Array) -> bool:
    """Hold splits of diverged warps until the lanes that the mask names are together.

    Returns whether it held one; others of the group then come again to this instruction.
    """
    batch = context.batch
    if not batch.is_diverged():
        return False
    if _gives_way(context, group):
        return True
    named = _named(group, mask)
    live = batch.splits.lanes(batch.rows)[:, group.rows]
    missing = (named & live & ~group.mask).any(axis=(0, 2))
    if not missing.any():
        return False
    group.settle()
    agreed(named)
    splits = batch.splits
    splits.pc[group.which] = group.pc
    splits.state[group.which[missing]] = AT_WARP
    release(context)
    return True


def _gives_way(context: Context, group: Group) -> bool:
    """End the turn of a group that came here in it if other lanes of its warps are behind."""
    splits = context.batch.splits
    if int(splits.pc[group.which[0]]) == group.pc or not context.batch.is_diverged():
        return False
    behind = (splits.state == READY) & (splits.pc <= group.pc)
    behind[group.which] = False
    if not np.isin(splits.row[behind], group.rows).any():
        return False
    group.settle()
    splits.pc[group.which] = group.pc
    return True


def release(context: Context) -> None:
    """Join and release the splits with all live lanes of their mask present.

    Lanes with equal masks at the same instruction join. Lanes with the same mask
    at another warp barrier are present as well, and go on by themselves (CUDA C++ Programming
    Guide, `__syncwarp`: any of that mask corresponds, from compute capability 7.0 on).
    """
    batch, splits = context.batch, context.batch.splits
    waiting = np.flatnonzero(splits.state == AT_WARP)
    if not len(waiting):
        return
    pc, row = splits.pc[waiting], splits.row[waiting]
    named = np.zeros((len(waiting), 32), dtype=bool)
    for place in np.unique(pc):
        here = Group(batch, waiting[pc == place])
        mask = here.read(context.instructions[int(place)].src[0])
        named[pc == place] = _named(here, mask)[0]
    bits = lanes.packed(named)[:, 0]
    what = corresponding(batch.program)[pc]
    union, order, first, sizes = union_of_runs(splits.mask[:, waiting], bits, what, row)
    live = splits.lanes(batch.rows)[:, row[first]]
    complete = ~(named[first] & live & ~union).any(axis=(0, 2))
    going = np.sort(order[np.repeat(complete, sizes)])
    apart = np.repeat(complete, sizes) & (pc[order] != np.repeat(pc[first], sizes))
    if apart.any():
        others = np.isin(row, row[order[apart]])
        _pass(context, waiting[going[others[going]]])
    batch.splits = splits.joined(waiting[going], bits[going], pc[going], row[going])


def _pass(context: Context, which: Array) -> None:
    """Continue splits behind barriers at several pcs, which would not find them together."""
    splits = context.batch.splits
    for place in np.unique(splits.pc[which]).tolist():
        instruction = context.instructions[place]
        here = Group(context.batch, which[splits.pc[which] == place])
        here.pc = place
        context.report(here, instruction, here.mask, mask=here.read(instruction.src[0]))
    splits.pc[which] += 1


@once
def corresponding(program: Program) -> Array:
    """Return, by pc, a number for the class of instructions that lanes wait at together.

    It is negative for instructions that only wait, and the pc for others.
    """
    rows = program.instructions
    kinds = ["" if _has_body(rows, pc) else OPS[one.op].kind for pc, one in enumerate(rows)]
    return np.array([CORRESPONDING.get(kind, pc) for pc, kind in enumerate(kinds)], dtype=np.int64)


def _has_body(rows: Sequence[Instruction], pc: int) -> bool:
    """Return whether lanes are collected there for more than a NOP, before the end of it."""
    is_collective = OPS[rows[pc].op].kind == "collect"
    return is_collective and any(_does_something(one) for one in rows[pc + 1 : pc + 3])


def _does_something(instruction: Instruction) -> bool:
    row = OPS[instruction.op]
    return row.kind != "compute" or row.evaluate is not None


def reduce_lanes(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Reduce the values of active lanes; all of them get the result."""
    operation, signed = instruction.detail
    value = group.read(instruction.src[0], np.uint32)
    value = value.view(np.int32) if signed else value
    total = lanes.reduced(operation, value, on)
    group.write(instruction.dst[0], total.view(np.uint32), on)
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


def misses_lanes(group: Group, mask: Array, here: Array | None = None) -> Array:
    """Return a mask of the splits that lack a live lane of their mask.

    Lanes `here` are present: all that take part, or some of them.
    """
    batch = group.batch
    if here is None and not batch.is_diverged():
        return np.zeros(len(group.rows), dtype=bool)
    named = _named(group, mask)
    live = batch.splits.lanes(batch.rows)[:, group.rows]
    present = group.mask if here is None else here
    return np.asarray((named & live & ~present).any(axis=(0, 2)))


def agrees(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Tell each lane whether its value equals the first active lane's."""
    value = group.read(instruction.src[0], np.uint32)
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, on.shape))
    first = np.broadcast_to(on, value.shape).argmax(axis=2, keepdims=True)
    group.write(instruction.dst[0], value == np.take_along_axis(value, first, axis=2), on)
    context.report(group, instruction, on)
