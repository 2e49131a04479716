"""Load vectorisation: neighbours in shared memory are loaded at once, 8 or 16 bytes wide.

NVVM joins loads of a block of code, with nothing between them that could change their result,
if known bits of the index prove that the whole is aligned.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.compiler.ir import Array, Block, Function, Value, constant
from gpusim.lowering.analysis.alias import clobbers, is_plain_load
from gpusim.lowering.analysis.index_sums import IndexSum, Product, index_sum
from gpusim.lowering.analysis.indices import split_constant
from gpusim.lowering.analysis.known_bits import zero_bits

WIDEST_BYTES = 16
LEAST_BYTES = 4


@dataclass
class _Row:
    """Loads from one array at one index, a sum of products, but for the constants in it."""

    array: Array
    factors: dict[Product, int]
    loads: dict[int, Value] = field(default_factory=dict)

    def is_changed_by(self, other: Value) -> bool:
        """Whether an operation can change the result of the loads."""
        return any(clobbers(other, load) for load in self.loads.values())

    def pieces(self) -> list[list[tuple[int, Value]]]:
        """Return loads that one load can replace, in order, each with its constant offset."""
        size, found = self.array.dtype.itemsize, []
        left = dict(self.loads)
        width = WIDEST_BYTES
        while width > size:
            count = width // size
            for first in sorted(left):
                members = [left.get(first + k) for k in range(count)]
                if self._is_aligned(first, width) and None not in members:
                    found.append([(first + k, left.pop(first + k)) for k in range(count)])
            width //= 2
        return found

    def _is_aligned(self, first: int, width: int) -> bool:
        size = self.array.dtype.itemsize
        if (self.array.offset + first * size) % width:
            return False
        return all(
            size * factor * 2 ** min(sum(map(zero_bits, product)), 32) % width == 0
            for product, factor in self.factors.items()
        )


def load_vectorisation(function: Function) -> bool:
    """Join loads of neighbours in shared memory; return whether there were any."""
    changed = False
    for block in function.blocks:
        for row in _rows(block):
            for loads in row.pieces():
                _join(block, row, loads)
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
            total = IndexSum() if index is None else index_sum(index)
            row = next((r for r in rows if (r.array, r.factors) == (array, total.factors)), None)
            if row is None:
                rows.append(row := _Row(array, total.factors))
            row.loads.setdefault(step + total.constant, value)
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


def _join(block: Block, row: _Row, loads: list[tuple[int, Value]]) -> None:
    """Put one vector load in front of the first of some loads, and replace each by an element."""
    place = min(block.body.index(load) for _, load in loads)
    first = block.body[place]
    (index,) = first.args
    dtype = index.dtype
    assert dtype is not None
    made: list[Value] = []
    back = loads[0][0] - next(step for step, load in loads if load is first)
    if back:
        index = Value("add", dtype, [index, constant(back, dtype)], line=first.line)
        made.append(index)
    detail = row.array, len(loads)
    whole = Value("load_vector", row.array.dtype, [index], detail, first.line)
    block.body[place:place] = [*made, whole]
    for position, (_, load) in enumerate(loads):
        load.op, load.args, load.detail = "element", [whole], position
