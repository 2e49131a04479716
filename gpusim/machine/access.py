"""Instructions that touch memory: which elements each lane means, and what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.errors import FaultPlace, ReadOnlyError
from gpusim.isa import Instruction, Memory
from gpusim.machine import storage
from gpusim.machine.context import Context
from gpusim.machine.group import Group

Array = np.ndarray[Any, Any]
LANES = np.arange(32)


def load(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set each destination to the element at the address, and those that follow it."""
    memory = _memory(instruction)
    addresses = _addresses(group, instruction, memory)
    if instruction.guard is None or on.any():
        elements, index, on = _elements(context, group, instruction, addresses, on)
        for position, register in enumerate(instruction.dst):
            where = index + position if position else index
            if elements is None:
                value = np.zeros((1, 1, 1), dtype=memory.dtype)
            else:
                value = elements.take(where, mode="clip")
            if instruction.dtype is not None:
                value = value.astype(instruction.dtype, copy=False)
            group.write(register, value, on)
    context.tell(group, instruction, on, addresses)


def store(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Set the elements at the address to the sources."""
    addresses = _addresses(group, instruction, _memory(instruction))
    values = [group.read(register) for register in instruction.src[1:]]
    on = _writing(context, instruction, on)
    if on.any():
        elements, index, on = _elements(context, group, instruction, addresses, on)
        for position, stored in enumerate(values):
            if elements is None:
                break
            where = index + position if position else index
            where, value, taking = np.broadcast_arrays(where, stored, on)
            if taking.all():
                elements[where.reshape(-1)] = value.reshape(-1)
            else:
                elements[where[taking]] = value[taking]
    context.tell(group, instruction, on, addresses, values=tuple(values))


def atomic(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Update the elements at the address, lane by lane in order, and give the old ones."""
    memory = _memory(instruction)
    addresses = _addresses(group, instruction, memory)
    on, left = _writing(context, instruction, on), None
    if on.any():
        elements, index, on = _elements(context, group, instruction, addresses, on)
        operands = [group.read(register) for register in instruction.src[1:]]
        # Block after block, also where all do the same.
        every = np.ones((group.batch.placement.copies, 1, 1), dtype=bool)
        index, taking, _, *operands = np.broadcast_arrays(index, on, every, *operands)
        values = [operand[taking].astype(memory.dtype, copy=False) for operand in operands]
        old = None
        if elements is not None:
            old = storage.update_atomically(
                elements, index[taking], str(instruction.detail), values, bool(instruction.dst)
            )
        if instruction.dst:
            result = np.zeros(taking.shape, dtype=memory.dtype)
            result[taking] = 0 if old is None else old
            group.write(instruction.dst[0], result, on)
        if elements is not None and memory.space == "shared" and context.listeners:
            left = elements.take(index, mode="clip")
    context.tell(group, instruction, on, addresses, left=left)


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
            lanes, line = _lanes(group), instruction.line
            context.fault(storage.beyond_axis(wrong, indices, axis, size, name, line, lanes))
            return


def fence(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Order memory accesses, which are in order here."""
    context.tell(group, instruction, on)


def _memory(instruction: Instruction) -> Memory:
    assert instruction.memory is not None
    return instruction.memory


def _addresses(group: Group, instruction: Instruction, memory: Memory) -> Array:
    if not instruction.src:
        return np.full((1, 1, 1), memory.offset, dtype=np.int64)
    address = group.read(instruction.src[0]).astype(np.int64)
    return address + memory.offset if memory.offset else address


def _writing(context: Context, instruction: Instruction, on: Array) -> Array:
    """Return the lanes that may write: none of them where the array is read-only."""
    memory, line = _memory(instruction), instruction.line
    array = context.allocations[memory.name].array if memory.space == "global" else None
    if not isinstance(array, np.ndarray) or array.flags.writeable or not on.any():
        return on
    place = FaultPlace(line, array=memory.name, lanes=int(np.count_nonzero(on)))
    context.fault(ReadOnlyError(f"line {line}: {memory.name} is read-only", place))
    return np.zeros_like(on)


def _elements(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> tuple[Array | None, Array, Array]:
    """Return a memory's elements, flat, where each lane's first one is in them, and who is on.

    The elements are None for an array that has none. Lanes whose access is a fault are off.
    """
    memory, batch = _memory(instruction), group.batch
    if memory.space == "global":
        allocation = context.allocations[memory.name]
        index = storage.element_index(addresses, allocation.start, memory)
        on = _within(context, group, instruction, index, on, allocation.elements)
        return allocation.flat, index, on
    item = memory.dtype.itemsize
    size = memory.size or batch.launch.dynamic_shared_bytes // item
    index = storage.element_index(addresses, memory.base, memory)
    on = _within(context, group, instruction, index, on, size)
    owner, bytes_each = _shared(group) if memory.space == "shared" else _local(group)
    elements = bytes_each.reshape(-1).view(memory.dtype)
    # Owners are few where all lanes of a block share one: they are added up before the lanes.
    return elements, (owner * bytes_each.shape[-1] + memory.base) // item + index, on


def _within(
    context: Context, group: Group, instruction: Instruction, index: Array, on: Array, size: int
) -> Array:
    """Return the lanes whose access is one that a GPU makes; the others are faults."""
    memory, line, lanes = _memory(instruction), instruction.line, _lanes(group)
    for misfit in (
        storage.outside(index, on, size, memory, line, lanes),
        storage.misaligned(index, on, memory, line, lanes),
    ):
        if misfit is not None:
            context.fault(misfit.fault)
            on = on & ~misfit.wrong
    return on


def _lanes(group: Group) -> storage.Lanes:
    batch = group.batch
    blocks, threads = group.of_rows(batch.block_number), group.of_rows(batch.thread_number())
    return storage.Lanes(blocks, threads, batch.launch.grid, batch.launch.block)


def _shared(group: Group) -> tuple[Array, Array]:
    """Return which part of shared memory belongs to each row, and its bytes, part by part."""
    return group.of_rows(group.batch.block_of_row), group.batch.shared


def _local(group: Group) -> tuple[Array, Array]:
    """Return which part of local memory belongs to each lane, and its bytes, part by part."""
    batch = group.batch
    assert batch.local is not None
    copies = np.arange(len(batch.local)).reshape(-1, 1, 1)
    row = copies * batch.rows + group.rows.reshape(1, -1, 1)
    return row * 32 + LANES, batch.local
