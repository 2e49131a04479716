"""The parts of an index: a value, and a constant added to it."""

from __future__ import annotations

from gpusim.compiler.ir import Value
from gpusim.lowering.analysis.known_bits import largest, zero_bits
from gpusim.typing import DType


def split_constant(index: Value, space: str) -> tuple[Value | None, int]:
    """Return an index without the constant added to it, and the constant.

    An unsigned index of a global array may wrap before it is widened to 64 bits, so the
    constant stays where that cannot be ruled out.
    """
    total = 0
    while True:
        if index.constant is not None:
            return None, total + int(index.constant)
        if index.op not in ("add", "sub", "or") or index.args[1].constant is None:
            return index, total
        step = int(index.args[1].constant) * (-1 if index.op == "sub" else 1)
        if index.op == "or":
            if step < 0 or zero_bits(index.args[0]) < step.bit_length():
                return index, total
            total += step
            index = index.args[0]
            continue
        if space == "global" and _may_wrap(index, step):
            return index, total
        total += step
        index = index.args[0]


def _may_wrap(total: Value, step: int) -> bool:
    """Whether adding `step` may have wrapped around; signed integers may not, in C."""
    assert total.dtype is not None
    limit = 1 << (8 * total.dtype.itemsize)
    return total.dtype.kind == "u" and (step < 0 or largest(total.args[0]) + step >= limit)


def index_parts(index: Value) -> tuple[Value | None, int]:
    """Return an index as a value and a constant added to it.

    Casts between 32-bit types, and from 32 to 64 bits, do not matter for an index that
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
