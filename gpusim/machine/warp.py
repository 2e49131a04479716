"""Lanes of a warp together: shuffles and votes, and waiting for the lanes of a mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.machine import participation
from gpusim.machine.context import Context
from gpusim.machine.group import Group, agreed
from gpusim.machine.state import AT_WARP, union_of_runs
from gpusim.machine.value_divergence import agreed_words, diverge_by
from gpusim.program.memoisation import once

Array = np.ndarray[Any, Any]
LANES = np.arange(32)
# Instructions that only wait for lanes, by kind: equal numbers correspond, at any pc.
# Seen on an H200 for collective ones around nothing; around a shuffle or a barrier, none does here.
CORRESPONDING = {"warpsync": -1, "gather": -1, "collect": -2}
LANE_BITS = np.left_shift(np.uint32(1), LANES.astype(np.uint32))


def shuffle(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Give each lane the value of the lane that it names."""
    mask, value, lane, width = group.sources(instruction)
    if _waits(context, group, mask):
        return True
    source = _source(str(instruction.detail), lane.astype(np.int64), width.astype(np.int64))
    participation.check(context, group, instruction, mask, on, source)
    if instruction.dst:
        group.write(instruction.dst[0], _taken(value, source), on)
    context.report(group, instruction, on, mask=mask)
    return False


def _source(mode: str, lane: Array, width: Array) -> Array:
    """Return the lane that each lane reads from; its own where that lies outside its segment.

    Lanes, distances and masks are taken by their last five bits, as PTX's `shfl` does.
    """
    start, lane = LANES & ~(width - 1), lane & 31
    if mode == "idx":
        return np.asarray(start + (lane & (width - 1)))
    source: Array = {"up": LANES - lane, "down": LANES + lane, "bfly": LANES ^ lane}[mode]
    outside = source < start if mode == "up" else source > start + width - 1
    return np.where(outside, LANES, source)


def _taken(value: Array, source: Array) -> Array:
    """Return each lane's value from its source lane."""
    if value.shape[2] == 1:
        return value
    if source.shape[:2] == (1, 1):
        return np.asarray(np.take(value, source[0, 0], axis=2))
    shape = (*np.broadcast_shapes(value.shape[:2], source.shape[:2]), 32)
    return np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(source, shape), axis=2)


def _ballot(lanes: Array) -> Array:
    """Return lanes as bits of a number."""
    bits: Array = np.where(lanes, LANE_BITS, np.uint32(0))
    return np.asarray(bits.sum(axis=2, dtype=np.uint32, keepdims=True))


# The result of a vote, from the lanes, as bits, with true and with false predicates.
VOTES: Mapping[str, Callable[[Array, Array], Any]] = {
    "all": lambda _, no: no == 0,
    "any": lambda yes, _: yes != 0,
    "ballot": lambda yes, _: yes,
}


def vote(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Give each lane the vote over the predicates of its mask's lanes."""
    mask, predicate = group.sources(instruction)
    if _waits(context, group, mask):
        return True
    participation.check(context, group, instruction, mask, on)
    bits = mask.astype(np.uint32)
    yes, no = (_ballot(on & said) & bits for said in (predicate, ~predicate))
    value = VOTES[str(instruction.detail)](yes, no)
    group.write(instruction.dst[0], value, on)
    context.report(group, instruction, on, mask=mask)
    return False


def match(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Give each lane the lanes that have the bits of its value; all or none of them for "all"."""
    mask, value = group.sources(instruction)
    if _waits(context, group, mask):
        return True
    participation.check(context, group, instruction, mask, on)
    named = (mask.astype(np.uint32)[..., None] & LANE_BITS) != 0
    among = on[..., None, :] & named
    same = _same_bits(value, among)
    if instruction.detail == "all":
        alike = np.asarray((same | ~among).all(axis=3))
        group.write(instruction.dst[1], alike, on)
        same &= alike[..., None]
    group.write(instruction.dst[0], _packed(same), on)
    context.report(group, instruction, on)
    return False


def _same_bits(value: Array, among: Array) -> Array:
    """Return for each lane the lanes with its value, shaped (copies, splits, 32, 32)."""
    bits = value.view(np.dtype(f"u{value.dtype.itemsize}"))
    bits = np.broadcast_to(bits, (*np.broadcast_shapes(value.shape[:2], among.shape[:2]), 32))
    return np.asarray((bits[..., :, None] == bits[..., None, :]) & among)


def _packed(lanes: Array) -> Array:
    """Return lanes, the last axis, as bits of a number."""
    packed = np.ascontiguousarray(np.packbits(lanes, axis=-1, bitorder="little"))
    return np.asarray(packed.view(np.uint32)[..., 0])


def activemask(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Give the lanes that run this instruction, as bits."""
    group.write(instruction.dst[0], _ballot(on), on)
    context.report(group, instruction, on)


def warpsync(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Hold the group until the lanes in its mask arrive."""
    mask = group.read(instruction.src[0])
    if _waits(context, group, mask):
        return True
    participation.check(context, group, instruction, mask, on)
    context.report(group, instruction, on, mask=mask)
    return False


def exchange(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Shuffle as the hardware does: limits in a register, 0 from an inactive lane."""
    value, lane, limits = group.sources(instruction)
    mode, wants_value = instruction.detail
    source, inside = _from(mode, lane.astype(np.int64), limits.astype(np.int64))
    if on.all():
        taken = _taken(value, source)
    else:
        taken = _taken(np.where(on, value, value.dtype.type(0)), source)
    results = ((taken,) if wants_value else ()) + (inside,)
    for register, result in zip(instruction.dst, results, strict=False):
        group.write(register, result, on)
    context.report(group, instruction, on, sources=source if wants_value else None)


def _from(mode: str, lane: Array, limits: Array) -> tuple[Array, Array]:
    """Return each lane's source lane, its own if outside its segment, and whether it is inside.

    The limits hold the last lane of a segment, and above it the bits that tell segments apart
    (PTX ISA, shfl.sync).
    """
    clamp, segment = limits & 31, limits >> 8 & 31
    last = (LANES & segment) | (clamp & ~segment)
    lane = lane & 31
    if mode == "idx":
        source = (LANES & segment) | (lane & ~segment)
    else:
        source = {"up": LANES - lane, "down": LANES + lane, "bfly": LANES ^ lane}[mode]
    inside = source >= last if mode == "up" else source <= last
    return np.where(inside, source, LANES), inside


# The result of a poll, from the participating lanes and the ones with a true predicate.
_POLLS: Mapping[str, Callable[[Array, Array], Array]] = {
    "all": lambda on, yes: _all(~on | yes),
    "any": lambda _, yes: np.asarray(yes.any(axis=2, keepdims=True)),
    "alike": lambda on, yes: _all(~on | yes) | _all(~yes),
}


def _all(lanes: Array) -> Array:
    return np.asarray(lanes.all(axis=2, keepdims=True))


def poll(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Combine a predicate of the active lanes, and give the lanes with it true."""
    mode, wants_lanes, negated = instruction.detail
    predicate = group.read(instruction.src[0], bool)
    yes = on & (~predicate if negated else predicate)
    verdict = _POLLS[mode](on, yes)
    results = ((_ballot(yes),) if wants_lanes else ()) + (verdict,)
    for register, result in zip(instruction.dst, results, strict=False):
        group.write(register, result, on)
    context.report(group, instruction, on)


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
    bits = _ballot(named[None])[0, :, 0]
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


def same_lanes(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Find, for each lane, the lanes with the same value; or say whether all have it."""
    mode, wants_lanes = instruction.detail
    words = [group.read(register, np.uint32) for register in instruction.src]
    same = on[..., None, :] & on[..., :, None]
    for word in words:
        word = np.broadcast_to(word, np.broadcast_shapes(word.shape, on.shape))
        same = same & (word[..., None, :] == word[..., :, None])
    verdict = ~(on & ~(same | ~on[..., None, :]).all(axis=3)).any(axis=2, keepdims=True)
    bits = np.where(same, LANE_BITS, np.uint32(0)).sum(axis=3, dtype=np.uint32)
    if mode == "all":
        bits = np.where(verdict, bits, np.uint32(0))
    results = ((bits,) if wants_lanes else ()) + (verdict,)
    for register, result in zip(instruction.dst, results, strict=False):
        group.write(register, result, on)
    context.report(group, instruction, on)


_NEUTRAL = {"add": 0, "or": 0, "xor": 0, "and": -1}
_REDUCE: Mapping[str, np.ufunc] = {
    "add": np.add, "or": np.bitwise_or, "xor": np.bitwise_xor, "and": np.bitwise_and,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def reduce_lanes(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Reduce the values of active lanes; all of them get the result."""
    operation, signed = instruction.detail
    value = group.read(instruction.src[0], np.uint32)
    value = value.view(np.int32) if signed else value
    limits = np.iinfo(value.dtype)
    neutral = {**_NEUTRAL, "min": limits.max, "max": limits.min}[operation]
    spare = np.array(neutral).astype(value.dtype)
    held = np.where(on, np.broadcast_to(value, np.broadcast_shapes(value.shape, on.shape)), spare)
    total = _REDUCE[operation].reduce(held, axis=2, keepdims=True, dtype=value.dtype)
    group.write(instruction.dst[0], total.view(np.uint32), on)
    context.report(group, instruction, on)


def gather(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Wait for the lanes in a mask; waiting splits issue it again when the lanes arrive."""
    mask = group.read(instruction.src[0], np.uint32)
    misses = misses_lanes(group, mask)
    if misses.any():
        waiting = Group(group.batch, group.which[misses])
        waiting.pc = group.pc
        context.report(waiting, instruction, waiting.mask & on[:, misses])
    if _waits(context, group, mask):
        return True
    context.report(group, instruction, on, mask=mask)
    return False


def collect(context: Context, group: Group, instruction: Instruction, on: Array) -> bool:
    """Gather the lanes in each lane's mask, one group for each different mask."""
    named = agreed_words(group, instruction, group.mask)
    least = np.where(group.mask, named, np.uint32(0xFFFFFFFF)).min(axis=2)
    if (least == np.where(group.mask, named, np.uint32(0)).max(axis=2)).all():
        return gather(context, group, instruction, on)
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
