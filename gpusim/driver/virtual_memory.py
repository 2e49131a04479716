"""Virtual memory: reserved addresses, and memory that is created and mapped there.

Neighbouring mappings with access are one allocation, so that arrays lie across them. What a mapping
held when it was taken away comes back with the next one of its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.driver import status
from gpusim.driver.arena import MAPPED, Arena, OutOfMemoryError
from gpusim.driver.status import RefusedError


@dataclass(eq=False)
class Created:
    """Memory by its handle: its size, its owners, its mapping, and what it held without one."""

    size: int
    owners: int = 1
    is_mapped: bool = False
    held: np.ndarray[Any, Any] | None = None


@dataclass(eq=False)
class Mapping:
    """Memory at reserved addresses, with or without access."""

    address: int
    handle: int
    created: Created
    has_access: bool = False

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.address + self.created.size


class VirtualMemory:
    """The reservations and mappings of one process. RefusedError has the driver's status."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._reserved: dict[int, int] = {}
        self._created: dict[int, Created] = {}
        self._mappings: dict[int, Mapping] = {}
        self._allocations: set[int] = set()
        self._handles = 0

    def reserve(self, size: int, alignment: int) -> int:
        """Return the first of reserved addresses."""
        address = self._arena.reserve(size, alignment)
        self._reserved[address] = size
        return address

    def unreserve(self, address: int, size: int) -> None:
        """Give a whole reservation back, without mappings in it."""
        if self._reserved.get(address) != size or any(self._within(address, size)):
            raise RefusedError(status.INVALID_VALUE)
        del self._reserved[address]

    def create(self, size: int) -> int:
        """Return a handle of new memory."""
        if self._arena.used_bytes + size > self._arena.most_bytes:
            raise OutOfMemoryError
        self._arena.used_bytes += size
        self._handles += 1
        self._created[self._handles] = Created(size)
        return self._handles

    def retain(self, handle: int) -> None:
        """Count one more owner of a handle."""
        self._of(handle).owners += 1

    def release(self, handle: int) -> None:
        """Count one owner less; memory without owners lasts as long as it is mapped."""
        created = self._of(handle)
        created.owners -= 1
        if not created.owners:
            del self._created[handle]
            self._end(created)

    def map(self, address: int, size: int, handle: int) -> None:
        """Map memory at reserved addresses, without access."""
        created = self._of(handle)
        is_reserved = any(
            begin <= address and address + size <= begin + length
            for begin, length in self._reserved.items()
        )
        if not is_reserved or size != created.size or any(self._within(address, size)):
            raise RefusedError(status.INVALID_VALUE)
        if created.is_mapped:
            raise RefusedError(status.NOT_SUPPORTED)
        created.is_mapped = True
        if created.held is not None:
            self._arena.bytes_at(address, size)[:] = created.held
            created.held = None
        self._mappings[address] = Mapping(address, handle, created)

    def unmap(self, address: int, size: int) -> None:
        """Take the mappings in a range away."""
        for one in self._whole(address, size):
            del self._mappings[one.address]
            one.created.is_mapped = False
            held = self._arena.bytes_at(one.address, one.created.size)
            if one.created.owners:
                one.created.held = held.copy()
            self._end(one.created)
            self._arena.empty(one.address, one.created.size)
        self._renew()

    def set_access(self, address: int, size: int, has_access: int) -> None:
        """Let the device read and write the mappings in a range, or not."""
        for one in self._whole(address, size):
            one.has_access = bool(has_access)
        self._renew()

    def mapping(self, address: int) -> tuple[int, int]:
        """Return the handle of the memory at an address, and whether the device has access."""
        found = next(self._within(address, 1), None)
        if found is None:
            raise RefusedError(status.INVALID_VALUE)
        return found.handle, int(found.has_access)

    def _of(self, handle: int) -> Created:
        if handle not in self._created:
            raise RefusedError(status.INVALID_VALUE)
        return self._created[handle]

    def _end(self, created: Created) -> None:
        """Count memory as free that has neither owners nor a mapping."""
        if not created.owners and not created.is_mapped:
            self._arena.used_bytes -= created.size

    def _within(self, address: int, size: int) -> Iterator[Mapping]:
        every = self._mappings.values()
        return (one for one in every if one.address < address + size and address < one.end)

    def _whole(self, address: int, size: int) -> list[Mapping]:
        """Return the mappings that fill a range."""
        found = sorted(self._within(address, size), key=lambda one: one.address)
        covered = sum(one.created.size for one in found)
        if covered != size or not found or found[0].address != address:
            raise RefusedError(status.INVALID_VALUE)
        return found

    def _renew(self) -> None:
        """Make allocations of neighbouring mappings with access."""
        wanted = dict(self._runs())
        for address in list(self._allocations):
            region = self._arena.at(address)
            if region is None or wanted.get(address) != region.size:
                self._allocations.discard(address)
                if region is not None:
                    self._arena.unmap(address)
        for address, size in wanted.items():
            if address not in self._allocations:
                self._allocations.add(address)
                self._arena.place(address, size, MAPPED)

    def _runs(self) -> Iterator[tuple[int, int]]:
        begin = end = 0
        for address in sorted(self._mappings):
            one = self._mappings[address]
            if not one.has_access:
                continue
            if address != end:
                if begin:
                    yield begin, end - begin
                begin = address
            end = one.end
        if begin:
            yield begin, end - begin
