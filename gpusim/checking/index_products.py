"""Products of indices that exceed 32 bits: `row * columns` beyond 2^31.

They are reported only with out-of-bounds accesses or larger arrays: elsewhere a hash may wrap on
purpose.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np

from gpusim.checking.accessed_elements import Spread
from gpusim.checking.findings import Finding, Place
from gpusim.checking.races import thread_named
from gpusim.host.kept import once
from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.launch.events import Step
from gpusim.program.dataflow import reachable
from gpusim.typing import Array

WRAP = 1 << 32
_AFFINE = ("sum", "product", "high")
# Products by name alone, and the readers that take a register of machine code for a signed number.
_NO_PRODUCTS = re.compile(r"IMAD\.(MOV|IADD|X|HI)")
_SIGNED = re.compile(r"(?!.*\.U32)(IMAD\.WIDE|ISETP)|\w+(\.\w+)*\.(SX32|S32)")


@once
def index_products(program: Program) -> Mapping[int, bool]:
    """Return the products of 32 bits that addresses are computed from: whether they are signed."""
    rows = program.instructions
    made_of: dict[int, set[int]] = defaultdict(set)
    readers: dict[int, list[Instruction]] = defaultdict(list)
    for row in rows:
        for register in row.src:
            readers[register].append(row)
        for register in row.dst if OPS[row.op].affine in _AFFINE else ():
            made_of[register].update(row.src)
    starts = [row.src[0] for row in rows if row.memory is not None and row.src]
    addressing = reachable(starts, lambda register: made_of[register])
    return {
        pc: _is_signed(row, readers)
        for pc, row in enumerate(rows)
        if _is_product(row) and row.dst[0] in addressing
    }


def _is_product(row: Instruction) -> bool:
    is_narrow = len(row.dst) == 1 and row.dtype is not None and row.dtype.itemsize == 4
    is_product = OPS[row.op].affine == "product" and len(row.src) == 3 and is_narrow
    return is_product and not _NO_PRODUCTS.match(row.text)


def _is_signed(row: Instruction, readers: Mapping[int, Iterable[Instruction]]) -> bool:
    """Return whether a result is read as a signed number, also after a sum."""
    if not row.text:
        return row.dtype is not None and row.dtype.kind == "i"
    direct = list(readers.get(row.dst[0], ()))
    sums = [one for one in direct if OPS[one.op].affine == "sum" and len(one.dst) == 1]
    behind = [reader for one in sums for reader in readers.get(one.dst[0], ())]
    return any(_SIGNED.match(reader.text) for reader in (*direct, *behind))


def _readings(part: Array) -> tuple[Array, Array]:
    """Return an operand as signed and as unsigned numbers.

    A remainder `i - quotient * divisor` has a negative factor beside an unsigned index.
    """
    bits = part.view(np.uint32)
    return bits.view(np.int32).astype(np.float64), bits.astype(np.float64)


def overflow(step: Step, threads: Array, *, signed: bool) -> Finding | None:
    """Return the note for lanes with a product beyond 32 bits, None without any."""
    row, read = step.instruction, step.registers
    if read is None:
        return None
    kind = np.int32 if signed else np.uint32
    parts = [read(register).astype(kind, copy=False) for register in row.src]
    largest = [float(np.abs(part.astype(np.float64)).max(initial=0)) for part in parts]
    if largest[0] * largest[1] + largest[2] < WRAP // 2:
        return None
    held = read(row.dst[0]).astype(kind, copy=False)
    wrong = step.on
    for a, b, c in product(*map(_readings, parts)):
        wrong = wrong & (np.abs(a * b + c - held) >= WRAP // 2)
    if not wrong.any():
        return None
    spread = Spread(step, (step.placement.copies, len(step.rows), 32))
    at = int(np.argmax(spread.flat(wrong)))
    first, second, third, now = (int(spread.flat(one)[at]) for one in (*parts, held))
    exact = first * second + third
    if (exact - now) % WRAP:  # a sign of the instruction is not among its operands
        return None
    who = thread_named(spread.flat(threads[:, step.rows])[at])
    message = (
        f"{who}, line {row.line}: an index of {exact:,} does not fit in "
        f"{'a signed' if signed else 'an unsigned'} number of 32 bits and becomes {now:,}"
    )
    place = Place(row.line, "computes", who)
    return Finding("index-overflow", message, (place,), count=int(np.count_nonzero(wrong)))
