"""Which memory operations can touch the same memory.

Arrays of different spaces never overlap, nor do different shared or local arrays, save
that all dynamic shared arrays begin at one place. Parameters may overlap, as C pointers
without `__restrict__` may, whatever their types. Within an array, indices that differ by a
known constant differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.compiler.ir import Array, DType, Value


@dataclass(frozen=True)
class Place:
    """`count` elements of `array` from index `base` + `offset`; `base` None is zero."""

    array: Array
    base: Value | None
    offset: int
    count: int

    @property
    def key(self) -> tuple[object, ...]:
        """Equal keys, the same elements."""
        array = self.array
        return (array.space, array.name, array.dtype, self.base, self.offset, self.count)


def array_of(value: Value) -> Array:
    """Return the array that a load, store or atomic accesses."""
    array = value.detail if isinstance(value.detail, Array) else value.detail[0]
    assert isinstance(array, Array)
    return array


def place_of(value: Value) -> Place:
    """Return what a load, store or atomic touches."""
    base, offset = index_parts(value.args[0])
    count = value.detail[1] if value.operation.is_vector else 1
    return Place(array_of(value), base, offset, count)


def index_parts(index: Value) -> tuple[Value | None, int]:
    """Return an index as a value and a constant added to it.

    Casts between 32-bit types, and from those to 64 bits, do not matter for an index that
    is within bounds.
    """
    offset = 0
    while True:
        if index.op == "const":
            return None, _signed(offset + int(index.detail), index.dtype)
        if index.op == "cast" and _integers(index, index.args[0]):
            index = index.args[0]
        elif index.op == "add" and index.args[1].op == "const":
            offset += int(index.args[1].detail)
            index = index.args[0]
        else:
            return index, _signed(offset, index.dtype)


def _integers(*values: Value) -> bool:
    return all(v.dtype is not None and v.dtype.kind in "iu" and v.dtype.itemsize >= 4
               for v in values)  # fmt: skip


def _signed(offset: int, dtype: DType | None) -> int:
    bits = 32 if dtype is None else dtype.itemsize * 8
    half = 1 << (bits - 1)
    return (offset + half) % (1 << bits) - half


def may_overlap(a: Place, b: Place) -> bool:
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
    """Whether `other` can change, or let other threads change, what `access` touches."""
    if other.operation.orders_memory:
        return array_of(access).space != "local"
    if other.operation.access == "atomic":
        return array_of(other).space == array_of(access).space
    return other.operation.access == "store" and may_overlap(place_of(other), place_of(access))


def reads(other: Value, access: Value) -> bool:
    """Whether `other` can read, or let other threads read, what `access` touches."""
    if other.operation.orders_memory:
        return array_of(access).space != "local"
    if other.operation.access == "atomic":
        return array_of(other).space == array_of(access).space
    return other.operation.access == "load" and may_overlap(place_of(other), place_of(access))
