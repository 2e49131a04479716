"""Constant banks: arguments, launch parameters and constants of a kernel, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gpusim.isa.ops import LOCAL_HIGH, SHARED_HIGH, BankLayout, behind
from gpusim.launch.arguments import ArraySpec, NullPointer
from gpusim.launch.device_heap import Heap
from gpusim.launch.grid import Launch
from gpusim.launch.prepared import Prepared
from gpusim.machine.storage import Allocation, allocate
from gpusim.typing import Array

BANK_BYTES = 64 << 10
MOST_LAUNCHES = 64  # programs and grids with words that are kept
# Functions of the driver have addresses beside shared and local memory: by where bank 4 holds it.
FUNCTION_HIGH = 0x7FFD
_ADDRESSES = 4
_END = "end of "  # of a word with the address of an array's last byte

# Values set by the driver, by their meaning in a `BankLayout`. Without clusters a block is one of
# its own.
_WORDS: Mapping[str, Callable[[BankLayout, Launch], Array]] = {
    "reserved shared memory": lambda layout, launch: _words(
        layout.shared_start + behind(layout.static_shared_bytes + launch.dynamic_shared_bytes)
    ),
    "block size": lambda _, launch: _words(*launch.block),
    "grid size": lambda _, launch: _words(*launch.grid),
    "stack": lambda layout, _: _words(layout.stack_bytes),
    "dynamic shared bytes": lambda _, launch: _words(launch.dynamic_shared_bytes),
    "shared window": lambda *_: _words(0, SHARED_HIGH),
    "local window": lambda *_: _words(0, LOCAL_HIGH),
    "multiprocessors": lambda *_: _words(1),
    "memory descriptor": lambda *_: _words(0, 0),
    "last byte of the parameters": lambda layout, _: _words(
        max((offset + size for _, offset, size in layout.parameters), default=1) - 1
    ),
    "reserved shared bytes": lambda layout, _: _words(layout.shared_start),
    "reserved shared end": lambda *_: _words(288),  # seen on an H200
    "shared bytes with the reserved": lambda layout, launch: _words(
        layout.shared_start + layout.static_shared_bytes + launch.dynamic_shared_bytes
    ),
    "is in a cluster": lambda _, launch: _words(launch.cluster_blocks > 1),
    "cluster size": lambda _, launch: _words(*launch.cluster),
    "cluster size, inverted": lambda _, launch: np.array(
        [1 / size for size in launch.cluster], "<f4"
    ).view(np.uint8),
    "clusters": lambda _, launch: _words(*launch.clusters),
    "blocks of a cluster": lambda _, launch: _words(launch.cluster_blocks),
}


def _words(*values: int) -> Array:
    return np.array(values, "<u4").view(np.uint8)


def _address(value: int) -> Array:
    return np.frombuffer(value.to_bytes(8, "little"), np.uint8)


def _place(meaning: str, allocations: Mapping[str, Allocation]) -> int:
    """Return the address of an array, or of its last byte."""
    held = allocations[meaning.removeprefix(_END)]
    return held.address + (held.array.nbytes - 1 if meaning.startswith(_END) else 0)


@lru_cache(maxsize=MOST_LAUNCHES)
def _of_driver(layout: BankLayout, launch: Launch) -> Array:
    """Return bank 0 with the driver's words, without addresses and parameters."""
    made = np.zeros(BANK_BYTES, dtype=np.uint8)
    for offset, meaning in layout.words.items():
        if meaning in _WORDS:
            value = _WORDS[meaning](layout, launch)
            made[offset : offset + len(value)] = value
    return made


def banks(
    layout: BankLayout,
    launch: Launch,
    arguments: Mapping[str, Any],
    allocations: Mapping[str, Allocation],
) -> dict[int, Array]:
    """Return the constant banks of a launch as bytes."""
    made = {number: np.frombuffer(held, np.uint8).copy() for number, held in layout.fixed.items()}
    first = made[0] = _of_driver(layout, launch).copy()
    for offset, meaning in layout.words.items():
        if meaning not in _WORDS:
            first[offset : offset + 8] = _address(_place(meaning, allocations))
    for name, offset, size in layout.parameters:
        held = _bytes_of(arguments[name], allocations.get(name))
        first[offset : offset + size] = held[:size]
    if layout.grid_barrier is not None:
        name, low, high = layout.grid_barrier
        barrier = _address(allocations[name].address)
        first[low : low + 4], first[high : high + 4] = barrier[:4], barrier[4:]
    fourth = {
        offset: allocations[name].address + added
        for offset, (name, added) in layout.addresses.items()
    } | {offset: (FUNCTION_HIGH << 32) + offset for offset in layout.functions}
    if fourth:
        made[_ADDRESSES] = np.zeros(max(fourth) + 8, dtype=np.uint8)
    for offset, address in fourth.items():
        made[_ADDRESSES][offset : offset + 8] = _address(address)
    for number in made:
        for offset, name, added in layout.links.get(number, ()):
            made[number][offset : offset + 8] = _address(allocations[name].address + added)
    return made


def allocated(prepared: Prepared) -> dict[str, Allocation]:
    """Give every array of a launch an address, and copy initial data of the program into it."""
    arguments, layout = prepared.arguments, prepared.program.layout
    made = allocate(arguments, prepared.copies, prepared.places)
    if layout is None:
        return made
    if layout.heap:
        whole = made[layout.heap]
        heap = prepared.heap or Heap(whole.address, whole.array.nbytes)
        made[layout.heap] = replace(whole, heap=heap)
    for name in (name for name in layout.links if isinstance(name, str)):
        for offset, array, added in layout.links[name]:
            made[name].bytes_at(offset, 8)[:] = _address(made[array].address + added)
    held = banks(layout, prepared.launch, arguments, made) if layout.images else {}
    for name, (number, begin) in layout.images.items():
        image = held[number][begin : begin + made[name].array.nbytes]
        made[name].bytes_at(0, len(image))[:] = image  # none, where constants are requested alone
        made[name] = replace(made[name], is_constant=True)
    return made


def _bytes_of(value: Any, allocation: Allocation | None) -> Array:
    if isinstance(value, np.ndarray | ArraySpec):
        assert allocation is not None
        return _address(allocation.address)
    if isinstance(value, NullPointer):
        return np.zeros(8, np.uint8)
    return np.frombuffer(np.asarray(value).tobytes(), np.uint8)


def word(held: Mapping[int, Array], bank: int, offset: int) -> np.uint32:
    """Return 32 bits of a bank; zeros after its end."""
    found = held[bank][offset : offset + 4]
    return np.uint32(int.from_bytes(found.tobytes(), "little"))
