"""Memory instructions: the addressed elements of each lane, loads, stores and atomics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpusim.errors import FaultPlace, OutOfBoundsError, ReadOnlyError
from gpusim.gpu.memory import WORD_BYTES, first_of_each
from gpusim.isa.ops import LOCAL_HIGH, OPS, RANK_SHIFT, SHARED_HIGH, SPIN, Instruction, Memory
from gpusim.machine import async_copies, generic_addressing, storage
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.lane_elements import LaneElements
from gpusim.machine.livelock import BEGIN
from gpusim.typing import Array

LANES = np.arange(32)


def load(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set each destination to the element at the address, and the following elements."""
    memory = _memory(instruction)
    addresses = _addresses(group, instruction, memory)
    if instruction.guard is None or np.count_nonzero(on):
        asked = on
        touched, on = _touched(context, group, instruction, addresses, on)
        for position, register in enumerate(instruction.dst):
            value = _loaded(touched, position, memory)
            if instruction.dtype is not None:
                value = value.astype(instruction.dtype, copy=False)
            if context.on_fault is not None and np.any(asked & ~on):  # these continue with zeros
                group.write(register, np.where(on, value, value.dtype.type(0)), asked)
            else:
                group.write(register, value, on)
    context.report(group, instruction, on, addresses)


def _loaded(touched: Sequence[LaneElements], position: int, memory: Memory) -> Array:
    """Return the elements that lanes load, at `position` after their first ones."""
    value = np.zeros((1, 1, 1), dtype=memory.dtype)
    for number, one in enumerate(touched):
        there = one.loaded(position)
        if there is not None:
            value = there if not number else np.where(one.mine, there, value)
    return value


def store(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set the elements at the address to the sources; an asynchronous copy does so when awaited."""
    addresses = _addresses(group, instruction, _memory(instruction))
    values = [group.read(register) for register in instruction.src[1:]]
    on = _writing(context, instruction, on)
    if np.count_nonzero(on):
        touched, on = _touched(context, group, instruction, addresses, on)
        if OPS[instruction.op].asynchronous:
            context.batch.copies.begin(async_copies.lanes_of(group), touched, values)
        else:
            context.changes.count += 1
            for one in touched:
                for position, stored in enumerate(values):
                    one.set(position, stored)
    context.report(group, instruction, on, addresses, values=tuple(values))


def atomic(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Update the elements at the address, lane by lane in order, and return the old values."""
    memory = _memory(instruction)
    addresses = _addresses(group, instruction, memory)
    on, left = _writing(context, instruction, on), None
    first = added = None
    if on.any():
        touched, found = _touched(context, group, instruction, addresses, on)
        on, lost = found, on & ~found
        if instruction.op == SPIN:
            tried = first_of_each(addresses, on)
            touched = [replace(one, mine=one.mine & tried) for one in touched]
        given = _operands(group, instruction, memory)
        # Block after block, also where all do the same.
        every = np.ones((group.batch.placement.copies, 1, 1), dtype=bool)
        if context.listeners and _adds_floats(instruction):
            first, added = _loaded(touched, 0, memory), given[0]
        result: Array | None = None
        for one in touched:
            elements = one.elements
            index, taking, _, *operands = np.broadcast_arrays(one.index, one.mine, every, *given)
            values = [operand[taking].astype(memory.dtype, copy=False) for operand in operands]
            old = None
            if elements is not None:
                where = index[taking]
                before = elements[where] if context.executed >= BEGIN else None
                old = storage.update_atomically(
                    elements, where, str(instruction.detail), values, bool(instruction.dst)
                )
                one.keep()
                # A failed lock attempt changes nothing; no snapshot exists before it is kept.
                same = before is not None and np.array_equal(before, elements[where])
                context.changes.count += not same
            if instruction.dst:
                result = _passed_by(instruction, given, taking) if result is None else result
                result[taking] = 0 if old is None else old
            if elements is not None and memory.space == "shared" and context.listeners:
                left = elements.take(index, mode="clip")
        if instruction.dst:
            result = _passed_by(instruction, given, found) if result is None else result
            _give_old(group, instruction, result, on | lost if lost.any() else on)
        if instruction.dst and instruction.detail == "cas" and lost.any():
            # Loops end that swap until the old value is the one expected.
            _give_old(group, instruction, np.array(given[0]), lost)
    context.report(group, instruction, on, addresses, left=left, before=first, added=added)


def _adds_floats(instruction: Instruction) -> bool:
    """Return whether an atomic is a sum of single floating-point numbers."""
    is_float = _memory(instruction).dtype.kind == "f"
    return is_float and str(instruction.detail).startswith(("add", "sub"))


def _passed_by(instruction: Instruction, given: Sequence[Array], on: Array) -> Array:
    """Return an atomic's result for inactive lanes: never the value a spinning lane expects."""
    dtype = _memory(instruction).dtype
    if instruction.op == SPIN:
        return np.array(np.broadcast_to(~given[0], on.shape))
    return np.zeros(on.shape, dtype)


def bounds(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Check the indices of an access along each axis; no instruction is run for it."""
    context.executed -= 1
    name, space, shape = instruction.detail
    if space == "global":
        shape = context.allocations[name].array.shape
    indices = [group.read(register) for register in instruction.src]
    for axis, (index, size) in enumerate(zip(indices, shape, strict=True)):
        wrong = ((index < 0) | (index >= size)) & on
        if wrong.any():
            lanes, line = generic_addressing.lanes_of(group), instruction.line
            context.fault(storage.beyond_axis(wrong, indices, axis, size, name, line, lanes))
            return


def _operands(group: Group, instruction: Instruction, memory: Memory) -> list[Array]:
    """Return the operands of an atomic: numbers, or registers of bits assumed to be numbers."""
    registers = [group.read(register) for register in instruction.src[1:]]
    if not memory.by_address:
        return registers
    if memory.dtype.itemsize == WORD_BYTES:
        return [register.view(memory.dtype) for register in registers]
    if memory.dtype.itemsize > 2 * WORD_BYTES:
        return [_joined(registers[k : k + 4], memory.dtype) for k in range(0, len(registers), 4)]
    pairs = zip(registers[::2], registers[1::2], strict=True)
    up = np.uint64(8 * WORD_BYTES)
    return [((high.astype(np.uint64) << up) | low).view(memory.dtype) for low, high in pairs]


def _joined(registers: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Return registers as one number each of a type with as many words."""
    words = np.stack(np.broadcast_arrays(*registers), axis=-1)
    return np.asarray(words.view(dtype)[..., 0])


def _give_old(group: Group, instruction: Instruction, result: Array, on: Array) -> None:
    """Set the destination to the old value: a number, or registers of its bits."""
    if not _memory(instruction).by_address:
        group.write(instruction.dst[0], result, on)
        return
    words = result.view(np.uint32).reshape(*result.shape, -1)
    for position, register in enumerate(instruction.dst):
        group.write(register, words[..., position], on)


def usable(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> Array:
    """Return the lanes that may access memory; all others are faults."""
    if OPS[instruction.op].writes_memory:
        on = _writing(context, instruction, on)
    return _touched(context, group, instruction, addresses, on)[1]


def fence(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Order memory accesses; they are in order here, so it is only reported."""
    context.report(group, instruction, on)


def _memory(instruction: Instruction) -> Memory:
    assert instruction.memory is not None
    return instruction.memory


def _addresses(group: Group, instruction: Instruction, memory: Memory) -> Array:
    if not instruction.src:
        return np.full((1, 1, 1), memory.offset, dtype=np.int64)
    address = group.read(instruction.src[0]).astype(np.int64, copy=False)
    return address + memory.offset if memory.offset else address


def _writing(context: Context, instruction: Instruction, on: Array) -> Array:
    """Return the lanes that may write: none of them where the array is read-only."""
    memory = _memory(instruction)
    if memory.space != "global" or memory.by_address:
        return on
    return _allowed(context, instruction, context.allocations[memory.name], on)


def _allowed(
    context: Context, instruction: Instruction, allocation: storage.Allocation, on: Array
) -> Array:
    """Return the lanes that may write to an array: none of them where it is read-only."""
    line = instruction.line
    if not allocation.is_read_only or not on.any():
        return on
    place = FaultPlace(line, array=allocation.name, lanes=int(np.count_nonzero(on)))
    context.fault(ReadOnlyError(f"line {line}: {allocation.name} is read-only", place))
    return np.zeros_like(on)


def _touched(
    context: Context,
    group: Group,
    instruction: Instruction,
    addresses: Array,
    on: Array,
    part: Array | None = None,
) -> tuple[list[LaneElements], Array]:
    """Return the memories that lanes touch, and the lanes without a fault.

    `part` is the index of the shared memory that each lane touches, its own block's if not given.
    """
    memory, batch = _memory(instruction), group.batch
    if memory.space == "generic":
        return _anywhere(context, group, instruction, addresses, on)
    if memory.space == "global" and memory.by_address:
        return _found(context, group, instruction, addresses, on)
    if memory.space == "global":
        allocation = context.allocations[memory.name]
        index = storage.element_index(addresses, allocation.start, memory.dtype.itemsize)
        on = _within(context, group, instruction, index, on, allocation.elements)
        allocation.fill(index, on, memory)
        return [LaneElements(allocation.flat, index, on)], on
    if memory.by_address:
        on = _aligned(context, group, instruction, addresses, on)
    item = memory.dtype.itemsize
    size = memory.size
    if size is None:
        size = (batch.bytes_of(memory) + (item - 1) * instruction.may_overhang) // item
    index = storage.element_index(addresses, memory.base, item)
    on = _within(context, group, instruction, index, on, size)
    owner, bytes_each = _shared(group) if memory.space == "shared" else _local(group)
    owner = owner if part is None else part
    if not bytes_each.size:
        return [LaneElements(None, index, on)], on
    index = storage.element_index(addresses, 0, item) if memory.base else index
    elements = bytes_each.reshape(-1).view(memory.dtype)
    # Owners are few where all lanes of a block share one: they are added up before the lanes.
    return [LaneElements(elements, owner * (bytes_each.shape[-1] // item) + index, on)], on


def _anywhere(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> tuple[list[LaneElements], Array]:
    """Return the memories of lanes by generic address: each memory has a window."""
    window = addresses >> np.int64(32)
    layout = context.batch.program.layout
    start = 0 if layout is None else layout.shared_start
    within = addresses & np.int64(0xFFFFFFFF)
    shared, local = window == SHARED_HIGH, window == LOCAL_HIGH
    on = on & ~_has_no_block(context, group, instruction, within, on & shared)
    part, inside = None, within - start
    if group.batch.launch.cluster_blocks > 1:
        part, inside = _in_cluster(group, within - start)
    touched: list[LaneElements] = []
    good = np.zeros_like(on)
    for space, mine, places in (
        ("shared", on & shared, inside),
        ("local", on & local, within),
        ("global", on & ~shared & ~local, addresses),
    ):
        if mine.any():
            row = replace(instruction, memory=replace(_memory(instruction), space=space))
            of_block = part if space == "shared" else None
            some, fine = _touched(context, group, row, places, mine, of_block)
            touched += some
            good = good | fine
    return touched, good


def _in_cluster(group: Group, within: Array) -> tuple[Array, Array]:
    """Return the shared memory of an address in a cluster, and the place in it."""
    batch = group.batch
    first = group.of_rows(batch.block_of_row - batch.rank_of_row)
    rank = within >> np.int64(RANK_SHIFT)
    return first + rank, within & np.int64((1 << RANK_SHIFT) - 1)


def _has_no_block(
    context: Context, group: Group, instruction: Instruction, within: Array, on: Array
) -> Array:
    """Return the lanes with the rank of a block that their cluster does not have: a fault."""
    rank, blocks = within >> np.int64(RANK_SHIFT), group.batch.launch.cluster_blocks
    wrong = on & (rank >= blocks)
    if wrong.any():
        line, lanes = instruction.line, generic_addressing.lanes_of(group)
        block, thread, place = lanes.first(wrong, rank, _memory(instruction).name, line)
        has = f"a cluster has {blocks} blocks"
        if blocks == 1:
            has = "without a cluster size (--cluster) each block is alone"
        text = (
            f"line {line}: shared memory of rank {place.index} is out of bounds: {has} "
            f"(block {block}, thread {thread})"
        )
        context.fault(OutOfBoundsError(text, place))
    return wrong


def _found(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> tuple[list[LaneElements], Array]:
    """Return the arrays at the addresses; lanes without one are faults."""
    on = _aligned(context, group, instruction, addresses, on)
    touched: list[LaneElements] = []
    good = np.zeros_like(on)
    for allocation, mine, index in generic_addressing.places(
        context, group, instruction, addresses, on
    ):
        if not OPS[instruction.op].reads_memory or OPS[instruction.op].writes_memory:
            mine = _allowed(context, instruction, allocation, mine)
            if not mine.any():
                continue
        allocation.fill(index, mine, _memory(instruction))
        elements = generic_addressing.elements(allocation, _memory(instruction))
        touched.append(LaneElements(elements, index, mine, allocation.beyond))
        good = good | mine
    return touched, good


def _aligned(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> Array:
    """Return the lanes with an aligned address; misaligned ones are faults."""
    misfit = generic_addressing.misaligned(group, instruction, addresses, on)
    if misfit is None:
        return on
    context.fault(misfit.fault)
    return on & ~misfit.wrong


def _within(
    context: Context, group: Group, instruction: Instruction, index: Array, on: Array, size: int
) -> Array:
    """Return the lanes with a valid access; all others are faults."""
    memory, line = _memory(instruction), instruction.line
    who = partial(generic_addressing.lanes_of, group)
    inside = 1 if instruction.may_overhang else memory.count
    what = partial(_name_and_more, context, memory)
    scale = memory.dtype.itemsize, memory.numbered_bytes
    misfits = [storage.outside(index, on, size, inside, line, who, what, scale)]
    if not memory.by_address:  # addresses are aligned by now
        misfits.append(storage.misaligned(index, on, memory, line, who))
    for misfit in misfits:
        if misfit is not None:
            context.fault(misfit.fault)
            on = on & ~misfit.wrong
    return on


_NO_BYTES = (
    ": the launch has no dynamic shared memory (--shared-bytes, <<<grid, block, bytes>>> or "
    "kernel[grid, block, stream, bytes])"
)


def _name_and_more(context: Context, memory: Memory) -> tuple[str, str]:
    """Return the name of an access's array, and, of dynamic shared memory, how it gets its size."""
    program, name = context.batch.program, memory.name
    if memory.space != "shared":
        return name, ""
    known = program.shared_arrays
    if memory.by_address and memory.size is None:
        name = known[0].name if len(known) == 1 else name
        is_dynamic = not program.shared_bytes or any(one.size is None for one in known)
    else:
        is_dynamic = any(one.size is None and one.name == name for one in known)
        is_dynamic |= memory.size is None
    held = context.batch.launch.dynamic_shared_bytes
    given = f", in {held} bytes of dynamic shared memory (--shared-bytes)" if held else _NO_BYTES
    return name, given if is_dynamic else ""


def _shared(group: Group) -> tuple[Array, Array]:
    """Return the index of each row's part of shared memory, and the bytes, part by part."""
    return group.of_rows(group.batch.block_of_row), group.batch.shared


def _local(group: Group) -> tuple[Array, Array]:
    """Return the index of each lane's part of local memory, and the bytes, part by part."""
    batch = group.batch
    assert batch.local is not None
    copies = np.arange(len(batch.local)).reshape(-1, 1, 1)
    row = copies * batch.rows + group.rows.reshape(1, -1, 1)
    return row * 32 + LANES, batch.local
