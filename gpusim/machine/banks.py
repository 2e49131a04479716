"""Constant banks: the bytes that a launch gives a kernel beside its registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.arguments import ArraySpec, NullPointer
from gpusim.isa import BankLayout
from gpusim.launch import Launch
from gpusim.machine.storage import Allocation

Array = np.ndarray[Any, Any]

BANK_BYTES = 64 << 10
BLOCK_SIZE, GRID_SIZE, STACK = 0x0, 0xC, 0x28
SHARED_WINDOW, LOCAL_WINDOW = 0x18, 0x20
# Where shared and local memory begin among all addresses, as a multiple of 2^32: far above arrays.
# Functions of the driver have theirs there too: by where bank 4 holds it.
SHARED_HIGH, LOCAL_HIGH, FUNCTION_HIGH = 0x7FFF, 0x7FFE, 0x7FFD
_ADDRESSES = 4


def banks(
    layout: BankLayout,
    launch: Launch,
    arguments: Mapping[str, Any],
    allocations: Mapping[str, Allocation],
) -> dict[int, Array]:
    """Return the constant banks of a launch as bytes."""
    made = {number: np.frombuffer(held, np.uint8).copy() for number, held in layout.fixed.items()}
    first = np.zeros(BANK_BYTES, dtype=np.uint8)
    first[BLOCK_SIZE : BLOCK_SIZE + 12] = np.array(launch.block, "<u4").view(np.uint8)
    first[GRID_SIZE : GRID_SIZE + 12] = np.array(launch.grid, "<u4").view(np.uint8)
    first[STACK : STACK + 4] = np.array([layout.stack_bytes], "<u4").view(np.uint8)
    for place, high in ((SHARED_WINDOW, SHARED_HIGH), (LOCAL_WINDOW, LOCAL_HIGH)):
        first[place : place + 8] = np.array([high << 32], "<u8").view(np.uint8)
    for name, offset, size in layout.parameters:
        held = _bytes_of(arguments[name], allocations.get(name))
        first[offset : offset + size] = held[:size]
    if layout.grid_barrier is not None:
        name, low, high = layout.grid_barrier
        barrier = np.array([allocations[name].address], "<u8").view(np.uint8)
        first[low : low + 4], first[high : high + 4] = barrier[:4], barrier[4:]
    made[0] = first
    fourth = {
        offset: allocations[name].address + added
        for offset, (name, added) in layout.addresses.items()
    } | {offset: (FUNCTION_HIGH << 32) + offset for offset in layout.functions}
    if fourth:
        made[_ADDRESSES] = np.zeros(max(fourth) + 8, dtype=np.uint8)
    for offset, address in fourth.items():
        made[_ADDRESSES][offset : offset + 8] = np.array([address], "<u8").view(np.uint8)
    return made


def _bytes_of(value: Any, allocation: Allocation | None) -> Array:
    if isinstance(value, np.ndarray | ArraySpec):
        assert allocation is not None
        return np.array([allocation.address], "<u8").view(np.uint8)
    if isinstance(value, NullPointer):
        return np.zeros(8, np.uint8)
    return np.frombuffer(np.asarray(value).tobytes(), np.uint8)


def word(held: Mapping[int, Array], bank: int, offset: int) -> np.uint32:
    """Return 32 bits of a bank; zeros behind its end."""
    found = held[bank][offset : offset + 4]
    return np.uint32(int.from_bytes(found.tobytes(), "little"))
