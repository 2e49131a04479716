"""Bulk copies between global and shared memory (`cp.async.bulk`), completed at the wait.

A copy to shared memory completes when a thread tests the phase of its mbarrier after all arrivals;
a copy to global memory when its warp waits for its group. Either is as late as possible (PTX ISA,
cp.async.bulk): reads before the wait return the old contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpusim.errors import InputError, KernelFault, MisalignedError, OutOfBoundsError
from gpusim.gpu.memory import bulk_sectors
from gpusim.isa.ops import BULK_STORE, RANK_SHIFT, Instruction
from gpusim.launch.tensor_maps import Box
from gpusim.machine import barrier_words, bulk_reductions
from gpusim.machine.context import Context
from gpusim.machine.generic_addressing import lanes_of
from gpusim.machine.group import Group
from gpusim.machine.pending_copies import Bulk
from gpusim.machine.storage import Allocation
from gpusim.typing import Array

UNIT, WIDE, MAP_BYTES = 16, 8, 128  # of an engine's unit, a barrier, a tensor map


def begin(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Begin a copy of each warp, with the operands of its first active lane."""
    copies, stores = group.batch.bulk_copies, instruction.op == BULK_STORE
    told: list[Bulk] = []
    touched: list[Array] = []
    sectors = np.zeros((1, len(group.rows)), dtype=np.int64)
    for number, values in _of_first_lanes(group, instruction, on):
        place, barrier, low, high, units, *_ = values
        row, address = int(group.rows[number]), high << 32 | low
        own = row // group.batch.placement.warps_per_block
        block, place = _in_cluster(group, own, place)
        _, barrier = _in_cluster(group, own, barrier)
        size, box = (units & 0xFFFF) * UNIT, None
        mask = units >> UNIT
        if str(instruction.detail).startswith("tensor"):
            mask = values[-1] >> UNIT
            address, box = _mapped(context, address, values[4:])
            size = box.size
            if stores and min(box.first) < 0:
                raise InputError(
                    f"line {instruction.line}: a box is stored at a negative coordinate "
                    f"{box.first}: an H200 ends with an illegal instruction"
                )
        fault, array = _fault(context, group, instruction, place, barrier, address, size)
        if fault is None:
            made = copies.groups.get(row, 0) + 1 if stores else 0
            begins = _in_cluster(group, own, address)[1] if array is None else address - array.start
            how = _reduction(instruction, box)
            targets = _blocks(group, own, block, instruction, mask)
            at = begins if array is None else array.start + begins
            sectors[0, number] = len(targets) * _sectors(instruction, box, at, place, size)
            for one in targets:
                copies.count += 1
                new = (row, place, array, begins, size, barrier, made, copies.count, one, how, box)
                copies.pending.append(Bulk(*new))
                told.append(copies.pending[-1])
            if box is not None and array is not None:
                touched.append(np.insert(box.stretches() + array.start, 0, row, axis=1))
            context.changes.count += 1
        else:
            wrong = np.zeros((1, len(group.rows), 32), dtype=bool)
            wrong[0, number, int(np.broadcast_to(on, wrong.shape)[0, number].argmax())] = True
            what = f"a bulk copy of {size} bytes at address {address:#x}"
            context.fault(_told(group, instruction.line, wrong, what, fault))
    stretches = np.concatenate([np.zeros((0, 3), dtype=np.int64), *touched])
    context.report(group, instruction, on, values=(*_values(told), stretches, sectors))


def _sectors(instruction: Instruction, box: Box | None, begin: int, place: int, size: int) -> int:
    """Return the sectors that a copy moves for each of its blocks."""
    stores = instruction.op == BULK_STORE
    of_box = box.pieces(stores=stores) if box is not None else [(0, 0, size)]
    is_multicast = str(instruction.detail).endswith("multicast")
    return sum(
        bulk_sectors(begin + there, place + here, held, is_multicast=is_multicast)
        for there, here, held in of_box
    )


def _mapped(context: Context, address: int, coordinates: Sequence[int]) -> tuple[int, Box]:
    """Return the address of a tensor map's array, and the box at some coordinates."""
    for one in context.allocations.values():
        if one.start <= address and address + MAP_BYTES <= one.stop:
            words = one.bytes_at(address - one.start, MAP_BYTES).view(np.uint64).tolist()
            first = [value - (value >> 31 << 32) for value in coordinates]
            return words[0], Box.of(words[1:], first)
    raise InputError(f"there is no tensor map at address {address:#x}")


def _reduction(instruction: Instruction, box: Box | None) -> str:
    """Return the operation and type of a reduction in bulk, "" of a plain copy."""
    way, _, how = str(instruction.detail).partition(".")
    if box is not None:
        return f"{how}.{box.kind}" if how and instruction.op == BULK_STORE else ""
    return how if way == "peer" else f"{way}.{how}" if how else ""


def _in_cluster(group: Group, own: int, address: int) -> tuple[int, int]:
    """Return the block that an address of a block's cluster lies in, and the address in that."""
    blocks = group.batch.launch.cluster_blocks
    if blocks == 1:
        return own, address
    return own - own % blocks + (address >> RANK_SHIFT), address & (1 << RANK_SHIFT) - 1


def _blocks(
    group: Group, own: int, block: int, instruction: Instruction, mask: int
) -> Sequence[int]:
    """Return the blocks of the cluster that a copy goes to: one, or those of a mask by rank."""
    blocks = group.batch.launch.cluster_blocks
    if not str(instruction.detail).endswith("multicast"):
        return [block]
    return [own - own % blocks + rank for rank in range(blocks) if mask >> rank & 1]


def _told(group: Group, line: int, wrong: Array, what: str, fault: str | None) -> KernelFault:
    """Return the fault of a copy, by the lane that is `wrong`."""
    block, thread, place = lanes_of(group).first(wrong, np.zeros_like(wrong), "", line)
    if fault == "misaligned":
        text = f"line {line}: {what} is not aligned to 16 bytes (block {block}, thread {thread})"
        return MisalignedError(text, place)
    text = f"line {line}: {what} is out of bounds (block {block}, thread {thread})"
    return OutOfBoundsError(text, place)


def _fault(
    context: Context,
    group: Group,
    instruction: Instruction,
    place: int,
    barrier: int,
    address: int,
    size: int,
) -> tuple[str | None, Allocation | None]:
    """Return the fault of a copy, or None, and the accessed array."""
    batch = group.batch
    most = batch.program.addressable_shared(batch.launch.dynamic_shared_bytes)
    if place % UNIT or address % UNIT:
        return "misaligned", None
    stores = instruction.op == BULK_STORE
    size_there = 1 if str(instruction.detail).startswith("tensor") else size
    inside = 0 <= place <= most - size and (stores or 0 <= barrier <= most - WIDE)
    if str(instruction.detail).startswith("peer"):
        return (None if inside else "outside"), None
    held = (
        one
        for one in context.allocations.values()
        if one.start <= address and address + size_there <= one.stop
    )
    array = next(held, None) if inside else None
    return (None if array is not None else "outside"), array


def _of_first_lanes(
    group: Group, instruction: Instruction, on: Array
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the operands of each warp's first active lane, with the warp's place in the group."""
    shape = (1, len(group.rows), 32)
    values = [np.broadcast_to(group.read(one), shape)[0] for one in instruction.src]
    lanes = np.broadcast_to(on, shape)[0]
    return [
        (number, tuple(int(value[number, lanes[number].argmax()]) for value in values))
        for number in np.flatnonzero(lanes.any(axis=1)).tolist()
    ]


def commit(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Make a group of the copies that warps have issued since their last one."""
    groups = group.batch.bulk_copies.groups
    for row in group.rows[np.asarray(on.any(axis=2)).any(axis=0)].tolist():
        groups[row] = groups.get(row, 0) + 1
    context.report(group, instruction, on)


def await_groups(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Land the copies to global memory that warps wait for."""
    copies = group.batch.bulk_copies
    told: list[Bulk] = []
    for row in group.rows[np.asarray(on.any(axis=2)).any(axis=0)].tolist():
        last = copies.groups.get(row, 0) - int(instruction.detail)
        mine = [one for one in copies.pending if one.row == row and 0 < one.group <= last]
        for one in copies.take(mine):
            if one.box is None:
                _store(one, _shared(group, one.row, one.place, one.size))
            else:
                _store_box(one, one.box, group.batch.shared[one.block])
            told.append(one)
            context.changes.count += 1
    context.report(group, instruction, on, values=_values(told))


def _values(copies: Sequence[Bulk]) -> tuple[Array, ...]:
    """Return the copies of a step, a row each."""
    return (np.array([one.told for one in copies], dtype=np.int64).reshape(-1, 8),)


def land(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Complete the copies of tested phases that wait for nothing else."""
    batch, copies = group.batch, group.batch.bulk_copies
    told: list[Bulk] = []
    if copies.pending:
        shape = (1, len(group.rows), 32)
        barriers, phases = (np.broadcast_to(group.read(one), shape) for one in instruction.src)
        _, rows, lanes = np.nonzero(np.broadcast_to(on, shape))
        warps = batch.placement.warps_per_block
        asked = {
            (
                int(group.rows[row]) // warps,
                int(barriers[0, row, lane]),
                int(phases[0, row, lane]) >> 31 & 1,
            )
            for row, lane in zip(rows, lanes, strict=True)
        }
        for block, barrier, phase in sorted(asked):
            told += _landed(context, group, block, barrier, phase)
    context.report(group, instruction, on, values=_values(told))


def _landed(context: Context, group: Group, block: int, barrier: int, phase: int) -> Iterator[Bulk]:
    """Complete the copies of a barrier's phase that waits for nothing else, and yield them.

    A test with the parity of another phase completes none.
    """
    warps = group.batch.placement.warps_per_block
    copies = group.batch.bulk_copies
    word = _shared(group, block * warps, barrier, WIDE).view(np.uint64)
    waiting = [
        one
        for one in copies.pending
        if int(word[0]) >> 63 == phase
        if not one.group and one.block == block and one.barrier == barrier
    ]
    for one in waiting:
        if word[0] & barrier_words.ONE:
            copies.take([one])
            target = _shared(group, block * warps, one.place, one.size)
            if one.box is not None and one.array is not None:
                one.box.load(one.array.whole(), group.batch.shared[block], one.place)
            elif one.array is None:
                sent = _shared(group, one.row, one.begin, one.size)
                target[:] = _combined(one, target, sent)
            else:
                one.array.copy_to(target, one.begin)
            word[:] = barrier_words.complete_transactions(word, np.array([one.size], np.uint64))
            context.changes.count += 1
            yield one


def _store(one: Bulk, source: Array) -> None:
    """Store the bytes of a copy to global memory, or combine them with the old ones."""
    assert one.array is not None
    before = np.zeros(one.size, np.uint8)
    if one.reduction:
        one.array.copy_to(before, one.begin)
    one.array.copy_from(_combined(one, before, source), one.begin)


def _store_box(one: Bulk, box: Box, shared: Array) -> None:
    """Store a box by a tensor map, or combine it with the old elements."""
    assert one.array is not None
    where, values = box.stored(shared, one.place)
    array = one.array.whole()
    if one.reduction:
        values = bulk_reductions.combined(one.reduction, array[where], values)
    array[where] = values


def _combined(one: Bulk, before: Array, given: Array) -> Array:
    """Return the bytes in memory after a copy: its own, or their reduction with the old ones."""
    return bulk_reductions.combined(one.reduction, before, given) if one.reduction else given


def _shared(group: Group, row: int, place: int, size: int) -> Array:
    """Return bytes of the shared memory of a row's block."""
    block = row // group.batch.placement.warps_per_block
    return group.batch.shared[block, place : place + size]
