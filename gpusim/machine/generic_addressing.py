"""Accesses by address: the array at each lane's address, and the index of the element.

Usually all lanes access one array, tried first. A lane with an address in no array
is a fault that names the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpusim.errors import MisalignedError, OutOfBoundsError
from gpusim.isa.ops import Instruction, Memory
from gpusim.launch.arguments import NullPointer
from gpusim.machine.context import Context
from gpusim.machine.group import Group
from gpusim.machine.storage import Allocation, Lanes, Misfit, element_index
from gpusim.program.polling import swaps_of_parts
from gpusim.program.rounded_loads import rounded_loads
from gpusim.typing import Array

WORD, BYTE = np.dtype(np.uint32), np.dtype(np.uint8)


def lanes_of(group: Group) -> Lanes:
    """Return the block and thread numbers of a group's lanes."""
    batch = group.batch
    blocks, threads = group.of_rows(batch.block_number), group.of_rows(batch.thread_number())
    return Lanes(blocks, threads, batch.launch.grid, batch.launch.block)


def places(
    context: Context, group: Group, instruction: Instruction, addresses: Array, on: Array
) -> Iterator[tuple[Allocation, Array, Array]]:
    """Yield the arrays that lanes touch: each with the lanes that do and their first elements.

    Elements are counted in units of the access. Addresses in no array are reported as faults.
    """
    memory = instruction.memory
    assert memory is not None
    item = memory.dtype.itemsize
    common = _holder_of_all(context, addresses, memory)
    if common is not None:
        yield common, on, element_index(addresses, common.start, item)
        return
    shape = np.broadcast_shapes(addresses.shape, on.shape)
    left = on
    while left.any():
        where = np.broadcast_to(left, shape)
        position = np.unravel_index(where.argmax(), shape)
        first = int(np.broadcast_to(addresses, shape)[position])
        found = _holder(context, first, memory)
        if found is None:
            part = _part(context, group, instruction, addresses)
            wanted = memory if part is None else replace(memory, dtype=BYTE, count=1)
            needed = np.broadcast_to(addresses if part is None else part, shape)
            at = int(needed[position])
            around = _holder(context, at, wanted)
            if around is None:
                wrong = where & _lies_nowhere(context, needed, wanted)
                context.fault(_nowhere(context, group, instruction, needed, wrong, at))
                left = left & ~wrong
            else:
                mine = left & (addresses == first)
                mine = mine & (needed >= around.start) & (needed < around.stop)
                yield around.around(first, item), mine, np.zeros_like(addresses)
                left = left & ~mine
            continue
        last = found.stop - memory.width_bytes
        inside = (addresses >= found.start) & (addresses <= last)
        yield found, left & inside, element_index(addresses, found.start, item)
        left = left & ~inside


def _part(
    context: Context, group: Group, instruction: Instruction, addresses: Array
) -> Array | None:
    """Return the address of the byte that each lane needs; None where it needs all of the access.

    A swap needs the part of a word that it changes. What a load before it needs is not known, nor
    for a swap that changes nothing: a byte in an array.
    """
    program = context.batch.program
    swaps, loads = swaps_of_parts(program), rounded_loads(program)
    if group.pc in loads:
        return np.asarray(addresses | (group.read(loads[group.pc], np.uint32) & 1))
    if group.pc not in swaps and not any(group.pc in guesses for guesses in swaps.values()):
        return None
    nearest = addresses
    for one in context.allocations.values():
        begins = (addresses < one.start) & (one.start < addresses + WORD.itemsize)
        nearest = np.where(begins, one.start, nearest)
    if group.pc not in swaps:
        return nearest
    expected, new = (group.read(register, np.uint32) for register in instruction.src[1:])
    changed = expected ^ new
    lowest = changed & (~changed + np.uint32(1))
    byte = sum(lowest > limit for limit in (0xFF, 0xFFFF, 0xFFFFFF))
    return np.where(lowest == 0, nearest, addresses + byte)


def _holder_of_all(context: Context, addresses: Array, memory: Memory) -> Allocation | None:
    """Return the array with all addresses, those of inactive lanes included."""
    found = _holder(context, int(addresses.min()), memory)
    if found is None:
        return None
    last = found.stop - memory.width_bytes
    return found if addresses.max() <= last else None


def _holder(context: Context, address: int, memory: Memory) -> Allocation | None:
    """Return the array of an address; of overlapping arrays the one that starts closest."""
    width, item = memory.width_bytes, memory.dtype.itemsize
    for one in context.allocations.values():
        inside = one.start <= address <= one.stop - width
        if inside and (address - one.start) % item == 0:
            return one
    return None


def _lies_nowhere(context: Context, addresses: Array, memory: Memory) -> Array:
    """Return a mask of the addresses in no array."""
    found = np.ones(addresses.shape, dtype=bool)
    for one in context.allocations.values():
        last = one.stop - memory.width_bytes
        is_between = (addresses - one.start) % memory.dtype.itemsize != 0
        found &= (addresses < one.start) | (addresses > last) | is_between
    return found


def elements(allocation: Allocation, memory: Memory) -> Array | None:
    """Return an array's memory as elements of the access; None where it has none."""
    flat = allocation.flat
    if flat is None or flat.dtype == memory.dtype:
        return flat
    size = memory.dtype.itemsize
    if flat.nbytes % size:  # the last few bytes make no whole element
        return flat.view(np.uint8)[: flat.nbytes // size * size].view(memory.dtype)
    return flat.view(memory.dtype)


def misaligned(
    group: Group, instruction: Instruction, addresses: Array, on: Array
) -> Misfit | None:
    """Return the lanes with an address misaligned for the access's width, None if all fit."""
    memory = instruction.memory
    assert memory is not None
    odd = addresses & (memory.width_bytes - 1)
    if not np.count_nonzero(odd) or not ((odd != 0) & on).any():
        return None
    wrong = (odd != 0) & on
    line = instruction.line
    block, thread, place = lanes_of(group).first(wrong, addresses, memory.name, line)
    message = (
        f"line {line}: an access of {memory.width_bytes} bytes at address {place.index:#x} is not "
        f"aligned to its width (block {block}, thread {thread})"
    )
    return Misfit(wrong, MisalignedError(message, place))


def _nowhere(
    context: Context,
    group: Group,
    instruction: Instruction,
    addresses: Array,
    wrong: Array,
    address: int,
) -> OutOfBoundsError:
    memory, line = instruction.memory, instruction.line
    assert memory is not None
    block, thread, place = lanes_of(group).first(wrong, addresses, memory.name, line)
    who = f"(block {block}, thread {thread})"
    if isinstance(context.arguments.get(memory.name), NullPointer):
        text = f"line {line}: address {address:#x} is out of bounds: {memory.name} is null {who}"
        return OutOfBoundsError(text, place)
    if not context.allocations:
        text = f"line {line}: address {address:#x} is out of bounds: there are no arrays {who}"
        return OutOfBoundsError(text, place)
    meant = [one for name, one in context.allocations.items() if name in memory.places]
    nearest = min(meant or context.allocations.values(), key=lambda o: _distance(o, address))
    array = nearest.array
    index = (address - nearest.address) // array.dtype.itemsize
    is_of_bytes = array.dtype.itemsize == 1 < memory.dtype.itemsize
    what, unit = f"{nearest.name}[{index}]", "elements"
    if is_of_bytes:  # the type of its elements is not known
        what, unit = f"byte {index} of {nearest.name}", "bytes"
    return OutOfBoundsError(
        f"line {line}: {what} is out of bounds: {nearest.name} has {array.size} {unit} {who}",
        place,
    )


def _distance(one: Allocation, address: int) -> int:
    return max(one.start - address, address - one.stop, 0)
