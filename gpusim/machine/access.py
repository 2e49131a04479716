"""Instructions that touch memory: which elements each lane means, and what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.errors import KernelFault
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
        elements, index = _elements(context, group, instruction, addresses, on)
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
    if on.any():
        _check_writable(context, instruction)
        elements, index = _elements(context, group, instruction, addresses, on)
        for position, register in enumerate(instruction.src[1:]):
            if elements is None:
                break
            where = index + position if position else index
            where, value, taking = np.broadcast_arrays(where, group.read(register), on)
            if taking.all():
                elements[where.reshape(-1)] = value.reshape(-1)
            else:
                elements[where[taking]] = value[taking]
    context.tell(group, instruction, on, addresses)


def atomic(context: Context, group: Group, instruction: Instruction, on: Array) -> None:
    """Update the elements at the address, lane by lane in order, and give the old ones."""
    memory = _memory(instruction)
    addresses = _addresses(group, instruction, memory)
    if on.any():
        _check_writable(context, instruction)
        elements, index = _elements(context, group, instruction, addresses, on)
        operands = [group.read(register) for register in instruction.src[1:]]
        # Every block takes its turn, also where all do the same.
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
    context.tell(group, instruction, on, addresses)


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


def _check_writable(context: Context, instruction: Instruction) -> None:
    memory = _memory(instruction)
    array = context.allocations[memory.name].array if memory.space == "global" else None
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        raise KernelFault(f"line {instruction.line}: {memory.name} is read-only")


def _elements(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> tuple[Array | None, Array]:
    """Return a memory's elements, flat, and where each lane's first one is in them.

    The elements are None for an array that has none.
    """
    memory, batch = _memory(instruction), group.batch
    block_number = group.of_rows(batch.block_number)
    threads = group.of_rows(batch.thread_number())
    lanes = storage.Lanes(block_number, threads, batch.launch.grid, batch.launch.block)
    if memory.space == "global":
        allocation = context.allocations[memory.name]
        size, base = allocation.array.size, allocation.address
        return allocation.flat, storage.element_index(
            addresses, on, base, size, memory, instruction.line, lanes
        )
    item = memory.dtype.itemsize
    size = memory.size or batch.launch.dynamic_shared_bytes // item
    index = storage.element_index(addresses, on, memory.base, size, memory, instruction.line, lanes)
    owner, bytes_each = _shared(group) if memory.space == "shared" else _local(group)
    elements = bytes_each.reshape(-1).view(memory.dtype)
    # Owners are few where all lanes of a block share one: they are added up before the lanes.
    return elements, (owner * bytes_each.shape[-1] + memory.base) // item + index


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
