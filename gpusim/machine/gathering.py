"""Lanes of a warp that wait for each other: at a shuffle, a vote or a warp barrier with a mask.

They continue once all live lanes of the mask have arrived; another instruction of the same kind
with the same mask counts as well. If no lane of a warp can run, lanes at a shuffle or vote continue
without the missing ones: undefined in CUDA, and reported to checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from gpusim.host.kept import once
from gpusim.isa import lanes
from gpusim.isa.lanes import LANE_BITS
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.machine import participation
from gpusim.machine.context import Context
from gpusim.machine.exchanges import exchanged, is_exchange
from gpusim.machine.group import Group, agreed
from gpusim.machine.state import AT_CONVERGENCE, AT_WARP, READY, union_of_runs
from gpusim.typing import Array

# Instructions that only wait for lanes, by kind: equal numbers correspond, at any pc (seen on an
# H200). Exchanges among lanes have lower ones.
CORRESPONDING = {"warpsync": -1, "collect": -2}
FIRST_EXCHANGE = -3


def named_lanes(group: Group, mask: Array) -> Array:
    """Return the lanes that a mask operand names, shaped (copies, splits, 32)."""
    bits = mask.astype(np.uint32)
    if bits.shape[2] > 1:
        named = np.where(group.mask, bits, np.uint32(0))
        bits = np.bitwise_or.reduce(named, axis=2, keepdims=True)
    return np.broadcast_to((bits & LANE_BITS) != 0, (len(bits), len(group.rows), 32))


def misses_lanes(group: Group, mask: Array, here: Array | None = None) -> Array:
    """Return a mask of the splits that lack a live lane of their mask.

    Lanes `here` are present: all that take part, or some of them.
    """
    batch = group.batch
    if here is None and not batch.is_diverged():
        return np.zeros(len(group.rows), dtype=bool)
    named = named_lanes(group, mask)
    live = batch.splits.lanes(batch.rows)[:, group.rows]
    present = group.mask if here is None else here
    return np.asarray((named & live & ~present).any(axis=(0, 2)))


def waits(context: Context, group: Group, mask: Array) -> bool:
    """Block splits of diverged warps until all lanes of the mask arrive.

    Returns whether it blocked one; the rest of the group then repeats this instruction.
    """
    batch, is_gathered = context.batch, group.is_gathered
    group.is_gathered = False
    if is_gathered or not batch.is_diverged():
        return False
    if gives_way(context, group):
        return True
    named = named_lanes(group, mask)
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


def gives_way(context: Context, group: Group) -> bool:
    """End the turn of a group at this instruction if other lanes of its warps are at lower pcs."""
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

    Lanes with equal masks at the same instruction join. Lanes with the same mask at another warp
    barrier count as present and continue separately (CUDA C++ Programming Guide, `__syncwarp`: any
    of that mask corresponds, from compute capability 7.0 on). Lanes at another shuffle or vote of
    the same kind exchange values with all of them.
    """
    batch, splits = context.batch, context.batch.splits
    waiting = np.flatnonzero(splits.state == AT_WARP)
    if not len(waiting):
        return
    pc, row = splits.pc[waiting], splits.row[waiting]
    named = _named_by(context, waiting)
    bits, what = lanes.packed(named)[:, 0], corresponding(batch.program)[pc]
    union, order, first, sizes = union_of_runs(splits.mask[:, waiting], bits, what, row)
    live = splits.lanes(batch.rows)[:, row[first]]
    complete = np.repeat(~(named[first] & live & ~union).any(axis=(0, 2)), sizes)
    run = np.repeat(first, sizes)
    # Splits at several instructions do not run together: they continue after them.
    apart = np.isin(run, run[complete & (pc[order] != pc[run])])
    exchange = what[order] <= FIRST_EXCHANGE
    passing = np.flatnonzero(apart & ~exchange)
    passing = passing[np.argsort(order[passing])]
    runs = np.repeat(np.arange(len(first)), sizes)
    _pass(context, waiting[order[passing]], union[:, runs[passing]], bits[order[passing]])
    _exchange(context, waiting[order[apart & exchange]], run[apart & exchange])
    going = np.sort(order[complete])
    batch.splits = splits.joined(waiting[going], bits[going], pc[going], row[going])


def _named_by(context: Context, waiting: Array) -> Array:
    """Return the lanes that the masks of waiting splits name, (splits, 32)."""
    pc = context.batch.splits.pc[waiting]
    named = np.zeros((len(waiting), 32), dtype=bool)
    for place in np.unique(pc):
        here = Group(context.batch, waiting[pc == place])
        mask = here.read(context.instructions[int(place)].src[0])
        named[pc == place] = named_lanes(here, mask)[0]
    return named


def _pass(context: Context, which: Array, beside: Array, bits: Array) -> None:
    """Continue splits after barriers at several pcs, which the lanes `beside` have reached.

    The masks of all of them have the same `bits`.
    """
    splits = context.batch.splits
    for place in np.unique(splits.pc[which]).tolist():
        instruction, chosen = context.instructions[place], splits.pc[which] == place
        here = Group(context.batch, which[chosen])
        here.pc, mask = place, bits[None, chosen, None]
        context.report(here, instruction, here.mask, mask=mask, beside=beside[:, chosen])
    splits.pc[which] += 1


def _exchange(context: Context, which: Array, run: Array) -> None:
    """Continue splits of a run after an exchange of values at several pcs."""
    if not len(which):
        return
    batch, alike = context.batch, dict[tuple[int, ...], list[Array]]()
    order = np.lexsort((batch.splits.pc[which], run))
    for members in np.split(which[order], np.flatnonzero(np.diff(run[order])) + 1):
        alike.setdefault(tuple(batch.splits.pc[members].tolist()), []).append(members)
    for runs in alike.values():
        table = np.stack(runs)
        table = table[np.argsort(batch.splits.row[table[:, 0]], kind="stable")]
        _exchange_alike(context, [Group(batch, part) for part in table.T])


def _exchange_alike(context: Context, parts: list[Group]) -> None:
    """Let the lanes of several groups exchange values, with one result for each."""
    splits, whole = context.batch.splits, parts[0].joined(parts[1:])
    gather = context.instructions[whole.pc]
    masks = _merged(parts, [part.read(context.instructions[part.pc].src[0]) for part in parts])
    is_apart = OPS[gather.op].kind == "collect"  # of its exchange
    if is_apart:
        context.report(whole, gather, whole.mask, mask=masks)
        whole.pc += 1
    rows = [context.instructions[part.pc + is_apart] for part in parts]
    first, mask = rows[0], None if is_apart else masks
    values = [part.sources(row)[mask is not None :] for part, row in zip(parts, rows, strict=True)]
    operands = [_merged(parts, list(each)) for each in zip(*values, strict=True)]
    found = exchanged(first, mask, operands, whole.mask)
    if mask is not None:
        participation.check(context, whole, first, mask, whole.mask, found.sources)
    context.report(whole, first, whole.mask, mask=mask, sources=found.sources)
    context.executed += 1 + is_apart
    for part, row in zip(parts, rows, strict=True):
        for register, value in zip(row.dst, found.values, strict=False):
            part.write(register, value, part.mask)
        part.pc += 1 + is_apart
        part.settle()
        splits.pc[part.which] = part.pc


def _merged(parts: list[Group], values: list[Array]) -> Array:
    """Return the value of each lane in the group that it is in."""
    pairs = zip(parts[1:], values[1:], strict=True)
    return reduce(lambda held, pair: np.where(pair[0].mask, pair[1], held), pairs, values[0])


def with_those_present(context: Context) -> Group | None:
    """Return lanes at an exchange, of warps of which no lane can run; None if there are none.

    Those at the lowest pc go first. At a warp barrier lanes wait on, as on an H200.
    """
    batch, splits = context.batch, context.batch.splits
    waits = splits.state == AT_WARP
    waits &= corresponding(batch.program)[splits.pc] <= FIRST_EXCHANGE
    able = splits.row[(splits.state == READY) | (splits.state == AT_CONVERGENCE)]
    waiting = np.flatnonzero(waits & ~np.isin(splits.row, able))
    if not len(waiting):
        return None
    pc = int(splits.pc[waiting].min())
    waiting = waiting[splits.pc[waiting] == pc]
    bits = lanes.packed(_named_by(context, waiting))[:, 0]
    rows, first = np.unique(splits.row[waiting], return_index=True)
    going = waiting[bits == bits[first[np.searchsorted(rows, splits.row[waiting])]]]
    batch.splits = splits.joined(going, splits.row[going])
    is_here = (batch.splits.state == READY) & (batch.splits.pc == pc)
    here = np.flatnonzero(is_here & np.isin(batch.splits.row, rows))
    group = Group(batch, here[np.argsort(batch.splits.row[here])])
    group.is_gathered = True
    return group


@once
def corresponding(program: Program) -> Array:
    """Return, by pc, a number for the class of instructions that lanes wait at together.

    It is negative where several may correspond, and the pc for others.
    """
    rows = program.instructions
    found, numbers = np.arange(len(rows)), dict[Any, int]()
    for pc, row in enumerate(rows):
        exchange = _exchange_of(rows, pc)
        if exchange is not None:
            sides = len(exchange.src), len(exchange.dst)
            key = exchange.op, exchange.detail, exchange.dtype, sides
            found[pc] = FIRST_EXCHANGE - numbers.setdefault(key, len(numbers))
        elif not _has_body(rows, pc):
            found[pc] = CORRESPONDING.get(OPS[row.op].kind, pc)
    return found


def _exchange_of(rows: Sequence[Instruction], pc: int) -> Instruction | None:
    """Return the instruction by which the lanes that wait at a pc exchange values."""
    if OPS[rows[pc].op].checks_mask and is_exchange(rows[pc]):
        return rows[pc]
    body = rows[pc + 1 : pc + 3]
    is_collective = OPS[rows[pc].op].kind == "collect" and len(body) == 2
    if not is_collective or not is_exchange(body[0]) or _does_something(body[1]):
        return None
    return None if body[0].guard is not None else body[0]


def _has_body(rows: Sequence[Instruction], pc: int) -> bool:
    """Return whether an instruction collects lanes for more than NOPs."""
    is_collective = OPS[rows[pc].op].kind == "collect"
    return is_collective and any(_does_something(one) for one in rows[pc + 1 : pc + 3])


def _does_something(instruction: Instruction) -> bool:
    row = OPS[instruction.op]
    return row.kind != "compute" or row.evaluate is not None
