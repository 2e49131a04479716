"""Alias analysis: pairs of memory operations that may access the same memory.

Arrays of different spaces never overlap, nor do different shared or local arrays, save
that all dynamic shared arrays begin at one address. Parameters may overlap, as C pointers
without `__restrict__` may, at any type. Within an array, indices that differ by a
known constant differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.compiler.ir import Array, Value
from gpusim.lowering.analysis.indices import index_parts


@dataclass(frozen=True)
class MemoryLocation:
    """`count` elements of `array` from index `base` + `offset`; `base` None is zero."""

    array: Array
    base: Value | None
    offset: int
    count: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys, the same elements."""
        array = self.array
        place = (array.space, array.name, array.offset, array.dtype)
        return (*place, self.base, self.offset, self.count)


def array_of(value: Value) -> Array:
    """Return the array that a load, store or atomic accesses."""
    array = value.detail if isinstance(value.detail, Array) else value.detail[0]
    assert isinstance(array, Array)
    return array


def location_of(value: Value) -> MemoryLocation:
    """Return the location accessed by a load, store or atomic."""
    base, offset = index_parts(value.args[0])
    count = value.detail[1] if value.operation.is_vector else 1
    return MemoryLocation(array_of(value), base, offset, count)


def may_overlap(a: MemoryLocation, b: MemoryLocation) -> bool:
    """Whether two accesses can touch a common byte."""
    if a.array.space != b.array.space:
        return False
    one = (a.array.name, a.array.offset) == (b.array.name, b.array.offset)
    if not one:
        dynamic = a.array.shape == b.array.shape == (0,)
        return a.array.space == "global" or (a.array.space == "shared" and dynamic)
    if a.array.dtype != b.array.dtype or a.base is not b.base:
        return True
    return a.offset < b.offset + b.count and b.offset < a.offset + a.count


def is_plain_load(value: Value) -> bool:
    """Whether `value` reads memory that only stores change: not volatile."""
    return value.operation.access == "load" and not array_of(value).volatile


def clobbers(other: Value, access: Value) -> bool:
    """Whether `other` may change, or let other threads change, the location of `access`."""
    if other.operation.orders_memory:
        return array_of(access).space != "local"
    if other.operation.access == "atomic":
        return array_of(other).space == array_of(access).space
    return other.operation.access == "store" and may_overlap(
        location_of(other), location_of(access)
    )


def reads(other: Value, access: Value) -> bool:
    """Whether `other` may read, or let other threads read, the location of `access`."""
    if other.operation.orders_memory:
        return array_of(access).space != "local"
    if other.operation.access == "atomic":
        return array_of(other).space == array_of(access).space
    return other.operation.access == "load" and may_overlap(location_of(other), location_of(access))
