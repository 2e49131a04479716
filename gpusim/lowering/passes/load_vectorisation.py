"""Load vectorisation: neighbours in shared memory are loaded at once, 8 or 16 bytes wide.

NVVM joins loads of a block of code, with nothing between them that could change what they read,
where the bits of the index that are known say that the whole is aligned.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.compiler.ir import Array, Block, Function, Value, constant
from gpusim.lowering.analysis.alias import clobbers, is_plain_load
from gpusim.lowering.analysis.indices import split_constant
from gpusim.lowering.analysis.known_bits import zero_bits

WIDEST_BYTES = 16
LEAST_BYTES = 4


@dataclass
class _Row:
    """Loads from one array at one index, but for what constants add to that."""

    array: Array
    index: Value | None
    loads: dict[int, Value] = field(default_factory=dict)

    def is_changed_by(self, other: Value) -> bool:
        """Whether an operation can change what the loads read."""
        return any(clobbers(other, load) for load in self.loads.values())

    def pieces(self) -> list[tuple[int, list[Value]]]:
        """Return loads that one load can do, in order, behind what is added for the first."""
        size, found = self.array.dtype.itemsize, []
        left = dict(self.loads)
        width = WIDEST_BYTES
        while width > size:
            count = width // size
            for first in sorted(left):
                members = [left.get(first + k) for k in range(count)]
                if self._is_aligned(first, width) and None not in members:
                    found.append((first, [left.pop(first + k) for k in range(count)]))
            width //= 2
        return found

    def _is_aligned(self, first: int, width: int) -> bool:
        size = self.array.dtype.itemsize
        if (self.array.offset + first * size) % width:
            return False
        return self.index is None or (size << min(zero_bits(self.index), 32)) % width == 0


def load_vectorisation(function: Function) -> bool:
    """Join loads of neighbours in shared memory; return whether there were any."""
    changed = False
    for block in function.blocks:
        for row in _rows(block):
            for step, loads in row.pieces():
                _join(block, row, step, loads)
                changed = True
    return changed


def _rows(block: Block) -> list[_Row]:
    """Return a block's loads that could be joined, as far as nothing comes between them."""
    ended: list[_Row] = []
    rows: list[_Row] = []
    for value in block.body:
        if _can_be_wider(value):
            array: Array = value.detail
            index, step = split_constant(value.args[0], array.space)
            row = next((r for r in rows if r.array == array and r.index is index), None)
            if row is None:
                rows.append(row := _Row(array, index))
            row.loads.setdefault(step, value)
        elif not value.operation.pure:
            ended += [row for row in rows if row.is_changed_by(value)]
            rows = [row for row in rows if not row.is_changed_by(value)]
    return ended + rows


def _can_be_wider(value: Value) -> bool:
    if value.op != "load" or not is_plain_load(value):
        return False
    array: Array = value.detail
    is_known = array.space == "shared" and array.shape != (0,)
    return is_known and array.dtype.itemsize >= LEAST_BYTES


def _join(block: Block, row: _Row, step: int, loads: list[Value]) -> None:
    """Put one load in front of the first of some, and take each out of what it gives."""
    place = min(block.body.index(load) for load in loads)
    first = block.body[place]
    dtype = first.args[0].dtype
    assert dtype is not None
    made: list[Value] = []
    start = constant(step, dtype)
    if row.index is not None and step:
        made.append(start := Value("add", dtype, [row.index, start], line=first.line))
    elif row.index is not None:
        start = row.index
    detail = row.array, len(loads)
    whole = Value("load_vector", row.array.dtype, [start], detail, first.line)
    block.body[place:place] = [*made, whole]
    for position, load in enumerate(loads):
        load.op, load.args, load.detail = "element", [whole], position
