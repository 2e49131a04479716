"""The arrays of a launch in the linear memory of a module, copied at once or on first access.

One shift maps each global address to linear memory. NumPy's arrays are unchanged until a run has
ended. A large array, or one that the program does not name, is copied in chunks on first access
(`$is_there` of `runtime.wat`), so that a launch copies little more of a program's memory than it
accesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpusim.launch.paged import runs
from gpusim.machine.compiled import layout
from gpusim.machine.compiled.symbols import NotDerivedError
from gpusim.machine.compiled.translation import Translation
from gpusim.machine.storage import FIRST_ADDRESS, Allocation
from gpusim.machine.warps.accesses import ARRAY_BYTES, ARRAY_COUNT, ARRAYS, BROUGHT, MOST_ARRAYS
from gpusim.typing import Array

MOST_BYTES = 1 << 30  # of linear memory, where all of it may be accessed
MOST_ADDRESSED = (1 << 32) - (1 << 16)  # of linear memory of which little is accessed
# A chunk costs a call of the host, 20 us, and 10 us more: as much as 40 to 60 KB of a whole array.
# After some chunks as many are copied at once, and after calls for one in eight of the chunks, all
# of the array.
MOST_AT_ONCE = 64
MOST_CALLS = 0.125  # of the number of chunks


class Chunked(NamedTuple):
    """Chunks of 1 << `bits` bytes, and the least `bytes` of an array that is brought in them.

    `unnamed_bytes` are those of an array that the program does not name.
    """

    bits: int
    bytes: int
    unnamed_bytes: int


CHUNKED = Chunked(14, 1 << 24, 1 << 18)


def arrays_end(
    made: Translation, allocations: Mapping[str, Allocation], most: int = MOST_BYTES
) -> int:
    """Return the end of the arrays in linear memory; NotDerivedError where that is above `most`."""
    first = arrays_begin(made)
    if len(allocations) > MOST_ARRAYS:
        raise NotDerivedError("a launch with its number of arrays")
    stop = max((one.stop for one in allocations.values()), default=FIRST_ADDRESS)
    end = stop - first_address(allocations) + first
    if end > most:
        raise NotDerivedError("arrays larger than linear memory")
    return end


def arrays_begin(made: Translation) -> int:
    """Return the address of the first array, aligned as in the launch."""
    return -(-made.end // 512) * 512


def first_address(allocations: Mapping[str, Allocation]) -> int:
    """Return the lowest address of an array, as aligned as the first array in linear memory."""
    return min((one.start for one in allocations.values()), default=FIRST_ADDRESS) // 512 * 512


@dataclass
class Chunks:
    """An array copied in chunks, to linear memory from `begin` on.

    `number` is the index of its entries; at `there` is a byte for each chunk, set once it is
    copied.
    """

    one: Allocation
    begin: int
    number: int
    there: int
    calls: int = 0

    @property
    def count(self) -> int:
        """The number of chunks."""
        return -(-(self.one.stop - self.one.start) >> CHUNKED.bits)

    def bring(self, memory: Array, chunk: int) -> None:
        """Copy a chunk, and missing ones of as many chunks after it as before it; or all."""
        self.calls += 1
        if self.calls > MOST_CALLS * self.count:
            self.bring_all(memory)
            return
        before = self._there(memory)[max(chunk - MOST_AT_ONCE, 0) : chunk][::-1]
        count = len(before) if before.all() else int(before.argmin())
        self._copy_missing(memory, chunk, min(chunk + max(count, 1), self.count))

    def bring_all(self, memory: Array) -> None:
        """Copy all that is not there yet: accesses are then as to any other array."""
        self._copy_missing(memory, 0, self.count)
        entry = _brought(memory)[self.number]
        _table(memory)[self.number, 1:3] = entry[:2]
        entry[3] = 0

    def give(self, memory: Array) -> None:
        """Copy the present chunks back into NumPy's array."""
        for first, end in runs(self._there(memory) != 0):
            begin, stop = self._bytes(first, end)
            self.one.copy_from(memory[self.begin + begin : self.begin + stop], begin)

    def _copy_missing(self, memory: Array, first: int, end: int) -> None:
        """Copy the missing chunks of some; present ones may have been stored to."""
        for missing in runs(self._there(memory)[first:end] == 0):
            begin, stop = self._bytes(first + missing[0], first + missing[1])
            self.one.copy_to(memory[self.begin + begin : self.begin + stop], begin)
        self._there(memory)[first:end] = 1

    def _bytes(self, first: int, end: int) -> tuple[int, int]:
        """Return where some chunks begin and end in the array."""
        return first << CHUNKED.bits, min(end << CHUNKED.bits, self.one.stop - self.one.start)

    def _there(self, memory: Array) -> Array:
        return memory[self.there : self.there + self.count]


@dataclass
class Arrays:
    """The arrays of a launch in linear memory, by their names in the order of their entries."""

    named: dict[str, Allocation | None]
    shift: int  # from linear memory to their addresses
    chunked: dict[int, Chunks] = field(default_factory=dict)

    def bring(self, memory: Array, entry: int, chunk: int) -> None:
        """Copy a chunk of an entry's array; without an entry, all of all arrays."""
        if entry:
            self.chunked[(entry - ARRAYS) // ARRAY_BYTES].bring(memory, chunk)
            return
        for one in self.chunked.values():
            one.bring_all(memory)
        _set_word(memory, layout.CHUNKED, 0)

    def give(self, memory: Array) -> None:
        """Copy the arrays with stores back into NumPy's."""
        stored = _table(memory)[: len(self.named), 3].tolist()
        for number, one in enumerate(self.named.values()):
            if not stored[number] or one is None or one.flat is None or one.is_read_only:
                continue
            if not isinstance(one.array, np.ndarray) or not one.flat.nbytes:
                continue
            if number in self.chunked:
                self.chunked[number].give(memory)
            else:
                begin = one.start - self.shift
                one.copy_from(memory[begin : begin + one.flat.nbytes])


def mark_stored(memory: Array) -> None:
    """Mark all arrays as stored to, by a handler that does not say which."""
    _table(memory)[:, 3] = 1


def bring_arrays(
    memory: Array,
    made: Translation,
    allocations: Mapping[str, Allocation],
    *,
    in_chunks: bool = False,
) -> Arrays:
    """Write the table of arrays, and copy them into linear memory, or `in_chunks` later."""
    # First the arrays that the program names.
    names = [*made.arrays, *(name for name in allocations if name not in made.arrays)]
    named = {name: allocations.get(name) for name in names}
    found = Arrays(named, first_address(allocations) - arrays_begin(made))
    apart = _apart(allocations) if in_chunks else set()
    table, brought = np.zeros((2, len(named) + 1, 4), np.int64)
    there = layout.CHUNKS_THERE
    for number, (name, one) in enumerate(named.items()):
        if one is None:
            continue
        size, begin = one.stop - one.start, one.start - found.shift
        writable = 0 if one.is_read_only else size
        least = CHUNKED.bytes if number < len(made.arrays) else CHUNKED.unnamed_bytes
        table[number] = one.start, size, writable, 0
        brought[number] = size, writable, 0, 0
        # An array without elements has zeros: values stored there are never requested.
        if one.flat is not None and name in apart and size >= least:
            found.chunked[number] = chunks = Chunks(one, begin, number, there)
            table[number, 1:3], brought[number, 2:] = 0, (there, CHUNKED.bits)
            there += chunks.count
        elif one.flat is not None:
            one.copy_to(memory[begin : begin + size])
    memory[layout.CHUNKS_THERE : there] = 0
    _table(memory)[: len(table)] = table
    _brought(memory)[: len(table)] = brought
    _set_word(memory, ARRAY_COUNT, len(named))
    _set_word(memory, layout.CHUNKED, len(found.chunked))
    return found


def _apart(allocations: Mapping[str, Allocation]) -> set[str]:
    """Return the names of arrays that overlap with no other."""
    ordered = sorted(allocations.values(), key=lambda one: one.start)
    found = {one.name for one in ordered}
    last = None
    for one in ordered:
        if last is not None and one.start < last.stop:
            found -= {one.name, last.name}
        if last is None or one.stop > last.stop:
            last = one
    return found


def _table(memory: Array) -> Array:
    """Return the entries of arrays: address, bytes, writable bytes, and whether stored to.

    An array in chunks has entries of 0 bytes, so that each access to it requests its chunks.
    """
    held = memory[ARRAYS:][: ARRAY_BYTES * MOST_ARRAYS]
    return held.view(np.int64).reshape(-1, 4)


def _brought(memory: Array) -> Array:
    """Return the further entries: bytes, writable bytes, the address of chunk flags, bits."""
    held = memory[BROUGHT:][: ARRAY_BYTES * MOST_ARRAYS]
    return held.view(np.int64).reshape(-1, 4)


def _set_word(memory: Array, at: int, value: int) -> None:
    memory[at : at + 4].view(np.int32)[0] = value
