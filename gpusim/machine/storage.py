"""The machine's memory: byte addresses in, elements out, bounds checked.

Global arrays have addresses of their own, as on a GPU; each block has its bytes of shared memory,
each lane its bytes of local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim.errors import FaultPlace, KernelFault, MisalignedError, OutOfBoundsError
from gpusim.isa import floats
from gpusim.isa.ops import Memory
from gpusim.launch.arguments import ArraySpec
from gpusim.launch.device_heap import Heap
from gpusim.launch.grid import Dim3, places_of
from gpusim.launch.paged import PagedCopy
from gpusim.launch.prepared import Place
from gpusim.machine import barrier_words, packed_sums
from gpusim.typing import Array

FIRST_ADDRESS = 1 << 32
ALIGNMENT = 512
APART = 8192  # bytes, beyond this distance caches and DRAM are unaffected


@dataclass(frozen=True)
class Allocation:
    """A global array in memory, with its first element at `address`.

    Elements of a strided array may precede the first one and have gaps: memory from `start` on is
    `elements` elements long; `flat` are these, None for an array that has none. They may be a lazy
    `copy` from byte `after` on. A `heap` records the allocated ones. Constant memory has an
    allocation where code takes its address. Of a copy `around` an access, `beyond` are the bytes of
    the array, and the same bytes of the copy.
    """

    name: str
    address: int
    array: Array | ArraySpec
    flat: Array | None
    start: int
    elements: int
    copy: PagedCopy | None = None
    behind: int = 0
    heap: Heap | None = None
    is_constant: bool = False
    beyond: tuple[Array, Array] | None = None

    def around(self, address: int, size: int) -> Allocation:
        """Return a copy of an access that begins before the array or ends after it, with zeros."""
        if self.flat is None:
            return self
        first, last = max(address, self.start), min(address + size, self.stop)
        copy, held = np.zeros(size, np.uint8), self.bytes_at(first - self.start, last - first)
        part = copy[first - address : last - address]
        part[:] = held
        return replace(self, flat=copy, start=address, copy=None, beyond=(held, part))

    def placed_in(self, memory: Array, shift: int) -> Allocation:
        """Return the array with its elements in linear memory, at its address less a shift."""
        if self.flat is None:
            return self
        begin = self.start - shift
        held = memory[begin : begin + self.stop - self.start].view(self.flat.dtype)
        return replace(self, flat=held, copy=None)

    @property
    def is_read_only(self) -> bool:
        """Whether a kernel must not store to it."""
        return self.is_constant or (
            isinstance(self.array, np.ndarray) and not self.array.flags.writeable
        )

    def fill(self, index: Array, on: Array, memory: Memory) -> None:
        """Fill the copy with the elements that lanes touch, `index` in elements of the access."""
        if self.copy is not None:
            touched = np.broadcast_to(index, np.broadcast_shapes(index.shape, on.shape))
            begin = touched[np.broadcast_to(on, touched.shape)] * memory.dtype.itemsize
            self.copy.fill(begin + self.behind, memory.width_bytes)

    def bytes_at(self, begin: int, most: int) -> Array:
        """Return its bytes from a place on, to be read or set."""
        assert self.flat is not None
        found = self.flat.view(np.uint8)[begin : begin + most]
        if self.copy is not None:
            self.copy.fill(np.arange(len(found)) + begin + self.behind, 1)
        return found

    def whole(self) -> Array:
        """Return all its bytes, to be read or set; zeros without elements."""
        if self.flat is None:
            return np.zeros(self.stop - self.start, np.uint8)
        return self.bytes_at(0, self.stop - self.start)

    def copy_to(self, target: Array, begin: int = 0) -> None:
        """Copy its bytes from a place on; zeros without elements."""
        if self.flat is None:
            target[:] = 0
        elif self.copy is None:
            target[:] = self.flat.view(np.uint8)[begin : begin + len(target)]
        else:
            self.copy.copy_to(target, self.behind + begin)

    def copy_from(self, source: Array, begin: int = 0) -> None:
        """Set its bytes from a place on, if it has elements."""
        if self.flat is None:
            return
        if self.copy is None:
            self.flat.view(np.uint8)[begin : begin + len(source)] = source
        else:
            self.copy.copy_from(source, self.behind + begin)

    @property
    def extent(self) -> range:
        """The addresses of its memory."""
        return range(self.start, self.stop)

    @property
    def stop(self) -> int:
        """Where its memory ends."""
        return self.start + self.elements * self.array.dtype.itemsize


def allocate(
    arguments: Mapping[str, Any],
    copies: Sequence[PagedCopy] = (),
    places: Mapping[str, Place] | None = None,
) -> dict[str, Allocation]:
    """Give every array a separate address, aligned to 512 bytes.

    Arrays that share memory (one that is passed twice, views of one array that overlap) share
    their addresses as well. Some may lie in copies that are filled where they are touched; arrays
    in `places` keep the addresses that they have.
    """
    places = places or {}
    held = {_first_byte(one.bytes): one for one in copies}
    arrays = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, np.ndarray | ArraySpec)
    }
    memory = {
        name: _memory_of(value) if isinstance(value, np.ndarray) else (None, 0)
        for name, value in arrays.items()
    }
    extents = {name: _extent(name, value, memory[name][0]) for name, value in arrays.items()}
    regions = _regions(extents)
    placed: dict[str, Allocation] = {}
    starts: dict[int, int] = {}
    free = _free_from(extents, places)
    for name, value in arrays.items():
        region = regions[name]
        if region.start not in starts:
            starts[region.start] = free
            free += -(-len(region) // ALIGNMENT) * ALIGNMENT + APART
        flat, before = memory[name]
        elements = value.size if flat is None else flat.size
        start = starts[region.start] + extents[name].start - region.start
        address = start + before * value.dtype.itemsize
        address, start = places.get(name, Place(address, start))
        copy = held.get(region.start)
        behind = extents[name].start - region.start
        placed[name] = Allocation(name, address, value, flat, start, elements, copy, behind)
    return placed


def _free_from(extents: Mapping[str, range], places: Mapping[str, Place]) -> int:
    """Return the first address after all arrays with an address."""
    ends = [place.start + len(extents[name]) for name, place in places.items() if name in extents]
    if not ends:
        return FIRST_ADDRESS
    return -(-max(ends) // ALIGNMENT) * ALIGNMENT + APART


def with_copies(
    arguments: Mapping[str, Any], names: Collection[str], *, are_filled: bool = False
) -> tuple[dict[str, Any], tuple[PagedCopy, ...]]:
    """Return arguments with copies of the arrays of these names, and of all that overlap with them.

    The copies are filled where they are touched, or at once if they `are_filled`.
    """
    arrays = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, np.ndarray) and value.size
    }
    memory = {name: _memory_of(value) for name, value in arrays.items()}
    extents = {name: _extent(name, value, memory[name][0]) for name, value in arrays.items()}
    regions = _regions(extents)
    lowest = {extents[name].start: memory[name][0] for name in arrays}
    starts = {regions[name].start: len(regions[name]) for name in arrays if name in names}
    copies = {
        first: PagedCopy(_bytes(lowest[first], size), is_filled=are_filled)
        for first, size in starts.items()
    }
    made = dict(arguments)
    for name, value in arrays.items():
        first = regions[name].start
        if first in copies:
            before = memory[name][1] * value.itemsize
            place = extents[name].start - first + before
            held = copies[first].bytes
            made[name] = np.ndarray(value.shape, value.dtype, held, place, value.strides)
    return made, tuple(copies.values())


def _bytes(lowest: Array, size: int) -> Array:
    """Return `size` bytes from an array's first on, also past its end into overlapping ones."""
    return np.lib.stride_tricks.as_strided(lowest.view(np.uint8), (size,), (1,), writeable=False)


def _first_byte(flat: Array) -> int:
    """Return where an array begins in NumPy's memory."""
    return int(flat.__array_interface__["data"][0])


def _extent(name: str, array: Array | ArraySpec, flat: Array | None) -> range:
    """Return the bytes that an array takes in NumPy's memory; one of its own where it has none."""
    if flat is not None and flat.nbytes:
        first = _first_byte(flat)
        return range(first, first + flat.nbytes)
    # No memory lies below zero: only the same object gets the same range.
    first = -(1 << 64) * (1 + (id(array) if array.nbytes else id(name)))
    return range(first, first + max(array.nbytes, 1))


def _regions(extents: Mapping[str, range]) -> dict[str, range]:
    """Return for each array the bytes that it takes with all that overlap with it."""
    joined: list[range] = []
    region: dict[str, int] = {}
    for name, extent in sorted(extents.items(), key=lambda item: item[1].start):
        if joined and extent.start < joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, extent.stop))
        else:
            joined.append(extent)
        region[name] = len(joined) - 1
    return {name: joined[region[name]] for name in extents}


def _memory_of(array: Array) -> tuple[Array, int]:
    """Return the elements from an array's lowest to its highest, and how many lie before its first.

    Elements between that belong to other arrays are never touched: indices are checked by axis.
    """
    if array.flags.c_contiguous or not array.size:
        return array.reshape(-1), 0
    far = [(n - 1) * (s // array.itemsize) for n, s in zip(array.shape, array.strides, strict=True)]
    lowest = array[tuple(slice(-1, None) if steps < 0 else slice(0, 1) for steps in far)]
    span = 1 + sum(map(abs, far))
    flat = np.lib.stride_tricks.as_strided(
        lowest, (span,), (array.itemsize,), writeable=bool(array.flags.writeable)
    )
    return flat, -sum(steps for steps in far if steps < 0)


@dataclass(frozen=True)
class Lanes:
    """Accessing threads: used to name the thread of a fault.

    `blocks` and `threads` are linear numbers, shaped to broadcast against the addresses.
    """

    blocks: Array
    threads: Array
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def first(
        self, wrong: Array, index: Array, name: str, line: int
    ) -> tuple[str, str, FaultPlace]:
        """Return block and thread of the first wrong lane as a user counts them, and its place.

        A fault common to all blocks or rows is counted once, at position 0 along that axis.
        """
        if all((one == one[:1]).all() for one in (wrong, index)):
            wrong = wrong[:1]
        position = tuple(int(p[0]) for p in np.nonzero(wrong))
        block, thread, found = (_at(of, position) for of in (self.blocks, self.threads, index))
        count = int(np.count_nonzero(wrong))
        place = FaultPlace(line, block, thread, name, found, count)
        return coordinates(block, self.grid), coordinates(thread, self.block), place


def _at(values: Array, position: tuple[int, ...]) -> int:
    """Return the value at a position of a larger array that `values` are broadcast against."""
    return int(
        values[tuple(min(p, size - 1) for p, size in zip(position, values.shape, strict=True))]
    )


def coordinates(linear: int, size: Dim3) -> str:
    """Return a linear number as the indices that a user counts by."""
    _, y, z = size
    parts = places_of(linear, size)
    if y == z == 1:
        return str(parts[0])
    return str(parts[:2] if z == 1 else parts).replace(" ", "")


def element_index(addresses: Array, base: int, item: int) -> Array:
    """Return the index of the first element, of `item` bytes, that each lane touches.

    Sizes are powers of two: a shift is three times as fast as a division.
    """
    return (addresses - base if base else addresses) >> np.int64(item.bit_length() - 1)


@dataclass(frozen=True)
class Misfit:
    """Lanes with an invalid access, and the fault of the first of them."""

    wrong: Array
    fault: KernelFault


_MORE_BYTES = (
    "give the launch the dynamic shared memory that the kernel uses, or guard the access with the "
    "size of it"
)


def outside(
    index: Array,
    on: Array,
    size: int,
    inside: int,
    line: int,
    who: Callable[[], Lanes],
    what: Callable[[], tuple[str, str]],
    scale: tuple[int, int] = (1, 1),
) -> Misfit | None:
    """Return the lanes outside an array of `size` elements, None if there are none.

    The first `inside` elements of each access have to be elements of the array. `what` returns its
    name, and more about its size; `scale` are the bytes of its elements, and of the message's.
    """
    limit = size - inside
    if index.size and index.min() >= 0 and index.max() <= limit:
        return None  # nor do lanes that are off
    wrong = ((index < 0) | (index > limit)) & on
    if not wrong.any():
        return None
    name, about = what()
    own, told = scale
    block, thread, place = who().first(wrong, index * own // told, name, line)
    place = replace(place, remedy=_MORE_BYTES if about else "")
    message = (
        f"line {line}: {name}[{place.index}] is out of bounds: {name} has "
        f"{size * own // told} elements{about} (block {block}, thread {thread})"
    )
    return Misfit(wrong, OutOfBoundsError(message, place))


def beyond_axis(
    wrong: Array,
    indices: Sequence[Array],
    axis: int,
    size: int,
    name: str,
    line: int,
    lanes: Lanes,
) -> OutOfBoundsError:
    """Return the fault of lanes with an index outside its axis of `size` elements."""
    block, thread, place = lanes.first(wrong, indices[axis], name, line)
    position = tuple(int(p[0]) for p in np.nonzero(wrong))
    shown = ", ".join(str(_at(index, position)) for index in indices)
    return OutOfBoundsError(
        f"line {line}: {name}[{shown}] is out of bounds: index {place.index} along axis {axis}, "
        f"where {name} has {size} elements (block {block}, thread {thread})",
        place,
    )


def misaligned(
    index: Array, on: Array, memory: Memory, line: int, who: Callable[[], Lanes]
) -> Misfit | None:
    """Return the lanes with a misaligned vector access, None if there are none."""
    if memory.count == 1:
        return None
    wrong = (index % memory.count != 0) & on
    if not wrong.any():
        return None
    _, _, place = who().first(wrong, index, memory.name, line)
    message = (
        f"line {line}: a vector access of {memory.count} elements of {memory.name} starts at "
        f"an index that is not a multiple of {memory.count}"
    )
    return Misfit(wrong, MisalignedError(message, place))


def update_atomically(
    flat: Array, index: Array, operation: str, operands: list[Array], wants_old: bool
) -> Array | None:
    """Apply one atomic operation per entry, in order, and return the old values if wanted.

    `index` and the operands are one-dimensional; entries with the same index follow one
    another.
    """
    is_plain = packed_sums.PLAIN.get(operation)
    if is_plain is not None and is_plain(flat[index], operands[0]):
        operation = "add"
    if not wants_old and operation in _EXTREMES and flat.dtype.kind == "f":
        _extremes_at(flat, index, operation, operands[0])
        return None
    if not wants_old and operation in _UFUNCS:
        _UFUNCS[operation].at(flat, index, operands[0])
        return None
    old = np.empty(len(index), dtype=flat.dtype)
    order = _in_order(index)
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
    apply = (_APPLY_TO_FLOATS if flat.dtype.kind == "f" else _APPLY)[operation]
    for number in range(int(sizes.max(initial=0))):
        turn = starts[sizes > number] + number if number else starts
        entries, where = order[turn], ordered[turn]
        now = flat[where]
        old[entries] = now
        flat[where] = apply(now, *(o[entries] for o in operands))
    return old


def _in_order(index: Array) -> Array:
    """Return the entries in the order of their index, equal ones in their original order.

    Sorting numbers that hold the entry as well takes a tenth of the time of a stable `argsort`.
    """
    bits = len(index).bit_length()
    keys = index.astype(np.int64) << bits | np.arange(len(index))
    keys.sort()
    return np.asarray(keys & ((1 << bits) - 1))


def _extremes_at(flat: Array, index: Array, operation: str, values: Array) -> None:
    """Update floats by their order as integers: extremes do not depend on the order of lanes.

    A NaN loses: it is mapped to the worst of all values.
    """
    best = _EXTREMES[operation]
    limits = np.iinfo(f"i{flat.dtype.itemsize}")
    worst = limits.max if operation == "min" else limits.min
    places, place = np.unique(index, return_inverse=True)
    keys = np.where(np.isnan(flat[places]), worst, floats.order(flat[places]))
    best.at(keys, place, np.where(np.isnan(values), worst, floats.order(values)))
    flat[places] = floats.from_order(keys, flat.dtype)


_EXTREMES: Mapping[str, np.ufunc] = {"min": np.minimum, "max": np.maximum}
_UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    **_EXTREMES,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_APPLY: Mapping[str, Any] = {
    **_UFUNCS,
    "inc": lambda now, most: np.where(now >= most, now.dtype.type(0), now + now.dtype.type(1)),
    "dec": lambda now, most: np.where((now == 0) | (now > most), most, now - now.dtype.type(1)),
    "exch": lambda now, value: value,
    "cas": lambda now, compare, value: np.where(now == compare, value, now),
    **packed_sums.SUMS,
    **barrier_words.UPDATES,
}
_APPLY_TO_FLOATS: Mapping[str, Any] = {**_APPLY, "min": floats.minimum, "max": floats.maximum}
