"""Bounds of arrays in shared and constant memory, and the accesses checked against them.

A GPU, and the machine as well, lets an access beyond an array reach the next one in the same
memory. A check uses the bounds of each array.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gpusim.host.kept import MOST_KEPT
from gpusim.isa.ops import OPS, Instruction, NamedArray, Program


def with_array_bounds(program: Program, dynamic_shared_bytes: int) -> Program:
    """Return a program with bounds of arrays on its accesses, as far as they are known."""
    if not program.accessed_arrays:
        return program
    return _bounded(program, dynamic_shared_bytes)


@lru_cache(maxsize=MOST_KEPT)
def _bounded(program: Program, dynamic_shared_bytes: int) -> Program:
    end = program.shared_bytes + dynamic_shared_bytes
    rows = list(program.instructions)
    for pc, array in program.accessed_arrays.items():
        rows[pc] = _within(rows[pc], array, end)
    return replace(program, instructions=tuple(rows))


def _within(row: Instruction, array: NamedArray, end: int) -> Instruction:
    """Return an access with the bounds of its array; dynamic shared memory ends at `end`.

    Strong accesses to bytes are made by the whole words around them.
    """
    if row.memory is None:
        return replace(row, detail=(*row.detail[:2], array))
    size = array.size if array.size is not None else max(end - array.first, 0)
    item, first = row.memory.dtype.itemsize, array.first
    if row.memory.volatile or OPS[row.op].kind == "atomic":
        first -= first % item
    elements = -(-(array.first + size - first) // item)
    held = replace(row.memory, name=array.name, base=first, size=elements, each=array.each)
    return replace(row, memory=held)


def has_unknown_array(program: Program, pc: int) -> bool:
    """Return whether an access may reach several arrays, and names none that is known."""
    row = program.instructions[pc]
    if pc in program.accessed_arrays:
        return False
    if row.looks_up_constants:
        return len(program.constant_arrays) > 1
    memory = row.memory
    if memory is None or not memory.by_address or memory.space not in ("shared", "generic"):
        return False
    return len(program.shared_arrays) != 1
