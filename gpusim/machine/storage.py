"""Memory as the machine sees it: byte addresses in, elements out, bounds checked.

Global arrays stand at addresses of their own, as on a GPU; shared memory is a row of bytes
per block, local memory one per lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.arguments import ArraySpec
from gpusim.errors import KernelFault, OutOfBoundsError
from gpusim.isa import Memory

Array = np.ndarray[Any, Any]

FIRST_ADDRESS = 1 << 32
ALIGNMENT = 512


@dataclass(frozen=True)
class Allocation:
    """A global array and where it stands; `flat` are its elements, None where it has none."""

    name: str
    address: int
    array: Array | ArraySpec
    flat: Array | None


def allocate(arguments: Mapping[str, Any]) -> dict[str, Allocation]:
    """Give every array an address, aligned to 512 bytes and apart from the others.

    An array that is passed twice keeps one address.
    """
    placed: dict[str, Allocation] = {}
    seen: dict[int, int] = {}
    address = FIRST_ADDRESS
    for name, value in arguments.items():
        if not isinstance(value, np.ndarray | ArraySpec):
            continue
        elements = value.reshape(-1) if isinstance(value, np.ndarray) else None
        start = id(value)
        if isinstance(value, np.ndarray):
            start = value.__array_interface__["data"][0]
        if start not in seen or not value.nbytes:
            seen[start] = address
            address += -(-max(value.nbytes, 1) // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        placed[name] = Allocation(name, seen[start], value, elements)
    return placed


@dataclass(frozen=True)
class Lanes:
    """Who accesses memory: used to say which thread left an array's bounds.

    `blocks` and `threads` are linear numbers, shaped to broadcast against the addresses.
    """

    blocks: Array
    threads: Array
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def name(self, position: tuple[int, ...], shape: tuple[int, ...]) -> tuple[str, str]:
        """Return block and thread at a position of an array of `shape`, as a user counts them."""
        block = int(np.broadcast_to(self.blocks, shape)[position])
        thread = int(np.broadcast_to(self.threads, shape)[position])
        return _coordinates(block, self.grid), _coordinates(thread, self.block)


def _coordinates(linear: int, size: tuple[int, int, int]) -> str:
    x, y, z = size
    parts = (linear % x, linear // x % y, linear // (x * y))
    if y == z == 1:
        return str(parts[0])
    return str(parts[:2] if z == 1 else parts).replace(" ", "")


def element_index(
    addresses: Array, on: Array, base: int, size: int, memory: Memory, line: int, lanes: Lanes
) -> Array:
    """Return the index of the first element that each lane touches.

    Raises OutOfBoundsError where a lane that is on leaves the array, and KernelFault where a
    vector access is not aligned to its width.
    """
    item = memory.dtype.itemsize
    index = (addresses - base) // item if base else addresses // item
    limit = size - memory.count
    if on.all():
        bad = index.size and (index.min() < 0 or index.max() > limit)
    else:
        bad = bool((((index < 0) | (index > limit)) & on).any())
    if bad:
        wrong = ((index < 0) | (index > limit)) & on
        position = tuple(int(p[0]) for p in np.nonzero(wrong))
        block, thread = lanes.name(position, wrong.shape)
        found = int(np.broadcast_to(index, wrong.shape)[position])
        raise OutOfBoundsError(
            f"line {line}: {memory.name}[{found}] is out of bounds: {memory.name} has "
            f"{size} elements (block {block}, thread {thread})"
        )
    if memory.count > 1 and bool(((index % memory.count != 0) & on).any()):
        raise KernelFault(
            f"line {line}: a vector access of {memory.count} elements of {memory.name} starts at "
            f"an index that is no multiple of {memory.count}"
        )
    return index


def update_atomically(
    flat: Array, index: Array, operation: str, operands: list[Array], wants_old: bool
) -> Array | None:
    """Apply one atomic operation per entry, in order, and return the old values if wanted.

    `index` and the operands are one-dimensional; entries with the same index follow one
    another.
    """
    if not wants_old and operation in _UFUNCS:
        _UFUNCS[operation].at(flat, index, operands[0])
        return None
    old = np.empty(len(index), dtype=flat.dtype)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else order
    sizes = np.diff(np.r_[starts, len(order)])
    if operation in ("add", "sub") and flat.dtype.kind in "iu":
        values = operands[0][order]
        before = np.cumsum(values, dtype=flat.dtype) - values
        before -= np.repeat(before[starts], sizes)
        first = np.repeat(flat[ordered[starts]], sizes)
        old[order] = first + before if operation == "add" else first - before
        _UFUNCS[operation].at(flat, index, operands[0])
        return old
    for turn in range(int(sizes.max(initial=0))):
        entries = order[starts[sizes > turn] + turn]
        where = index[entries]
        now = flat[where]
        old[entries] = now
        flat[where] = _APPLY[operation](now, *(o[entries] for o in operands))
    return old


_UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_APPLY: Mapping[str, Any] = {
    **_UFUNCS,
    "exch": lambda now, value: value,
    "cas": lambda now, compare, value: np.where(now == compare, value, now),
}
