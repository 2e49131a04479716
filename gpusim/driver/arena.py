"""Device memory: allocations by address, in a file in memory that the program has mapped too.

A device pointer is an address of the program's process. Allocations stand apart from each other,
and addresses are used again only where there are no others, so that an access through a pointer
to freed memory is seen as one.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from bisect import bisect_right, insort
from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array

# Where device memory lies: above code that lies at fixed places, below the system's mappings.
BEGIN = 1 << 36
SIZES = (1 << 38, 1 << 36, 1 << 34)  # bytes of addresses, as many as the system grants
ALIGNMENT, APART = 512, 8192
# Kinds; OWN is of modules, MAPPED of reserved addresses with memory.
DEVICE, PINNED, MANAGED, REGISTERED, OWN, MAPPED = range(6)
_MAP_NORESERVE = 0x4000
_MOST_FREED = 1 << 12


class OutOfMemoryError(Exception):
    """There is no room for an allocation."""


@dataclass(frozen=True, eq=False)
class Region:
    """An allocation: its address, its kind and its bytes, an array of uint8.

    `mapped` is, of registered memory, the range of the program's own pages with it.
    """

    address: int
    size: int
    kind: int
    bytes: Array
    mapped: range = range(0)

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.address + self.size


class Arena:
    """The memory of one process's GPU, `most_bytes` at most; its file is `number`."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.number = os.memfd_create("gpusim device memory", os.MFD_CLOEXEC)
        self.size, self._held = self._mapped()
        self._bytes: Array = np.frombuffer(self._held, np.uint8)
        self._next = 0
        self._starts: list[int] = []
        self._regions: dict[int, Region] = {}
        self._free: list[tuple[int, int]] = []
        self.freed: dict[int, Region] = {}
        self.used_bytes = 0

    def _mapped(self) -> tuple[int, mmap.mmap]:
        for size in SIZES:
            with contextlib.suppress(OSError):
                os.ftruncate(self.number, size)
                return size, mmap.mmap(self.number, size, mmap.MAP_SHARED | _MAP_NORESERVE)
        raise OutOfMemoryError

    @property
    def regions(self) -> list[Region]:
        """The allocations in the order of their addresses."""
        return [self._regions[start] for start in self._starts]

    def allocate(self, size: int, kind: int) -> Region:
        """Return new memory, of zeros; OutOfMemoryError where the GPU has no more."""
        if kind == DEVICE and self.used_bytes + size > self.most_bytes:
            raise OutOfMemoryError
        offset = self._room(size)
        held = self._bytes[offset : offset + size]
        return self._add(Region(BEGIN + offset, size, kind, held))

    def _room(self, size: int) -> int:
        wanted = -(-size // ALIGNMENT) * ALIGNMENT + APART
        if self._next + wanted <= self.size:
            self._next += wanted
            return self._next - wanted
        for place, (offset, room) in enumerate(self._free):
            if room >= wanted:
                del self._free[place]
                return offset
        raise OutOfMemoryError

    def register(self, address: int, size: int, pages: range) -> int:
        """Take pages of the program's own for device memory; return where in the file they go."""
        offset = -(-self._next // mmap.PAGESIZE) * mmap.PAGESIZE
        self._next = offset + len(pages)
        if self._next > self.size:
            raise OutOfMemoryError
        first = offset + address - pages.start
        self._add(Region(address, size, REGISTERED, self._bytes[first : first + size], pages))
        return offset

    def reserve(self, size: int, alignment: int) -> int:
        """Return the first of addresses that nothing else gets, without memory as yet."""
        begin = self._next + BEGIN
        skipped = -begin % alignment
        if self._next + skipped + size + APART > self.size:
            raise OutOfMemoryError
        self._next += skipped + size + APART
        return begin + skipped

    def place(self, address: int, size: int, kind: int) -> Region:
        """Let reserved addresses be an allocation."""
        self.freed.pop(address, None)
        return self._add(Region(address, size, kind, self.bytes_at(address, size)))

    def unmap(self, address: int) -> None:
        """Let there be no allocation at a reserved address."""
        region = self._regions.pop(address)
        del self._starts[bisect_right(self._starts, address) - 1]
        self.freed[address] = region

    def bytes_at(self, address: int, size: int) -> Array:
        """Return the bytes at reserved addresses."""
        return self._bytes[address - BEGIN : address - BEGIN + size]

    def empty(self, address: int, size: int) -> None:
        """Give whole pages at reserved addresses back to the system."""
        self._held.madvise(mmap.MADV_REMOVE, address - BEGIN, size)

    def _add(self, region: Region) -> Region:
        insort(self._starts, region.address)
        self._regions[region.address] = region
        self.used_bytes += region.size * (region.kind in (DEVICE, MANAGED, OWN))
        return region

    def free(self, address: int) -> Region | None:
        """Take an allocation back; None where none begins there."""
        region = self._regions.pop(address, None)
        if region is None:
            return None
        del self._starts[bisect_right(self._starts, address) - 1]
        self.used_bytes -= region.size * (region.kind in (DEVICE, MANAGED, OWN))
        if region.kind != REGISTERED:
            self._give_back(region)
            self.freed[address] = region
            if len(self.freed) > _MOST_FREED:
                del self.freed[next(iter(self.freed))]
        return region

    def _give_back(self, region: Region) -> None:
        """Let the system have the pages, where nothing else lies: they are zeros afterwards."""
        offset = region.address - BEGIN
        first = offset // mmap.PAGESIZE * mmap.PAGESIZE
        last = -(-(offset + region.size) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._held.madvise(mmap.MADV_REMOVE, first, last - first)
        self._free.append((offset, -(-region.size // ALIGNMENT) * ALIGNMENT + APART))

    def at(self, address: int) -> Region | None:
        """Return the allocation that an address lies in."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        region = self._regions[self._starts[place]]
        return region if address < region.end else None

    def is_inside(self, address: int, size: int) -> bool:
        """Return whether a range of addresses lies in one allocation."""
        region = self.at(address)
        return region is not None and address + size <= region.end

    def clear(self) -> None:
        """Free everything."""
        for start in list(self._starts):
            self.free(start)

    def close(self) -> None:
        """Give the file back; views that others still hold keep their memory."""
        os.close(self.number)
