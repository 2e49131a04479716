"""Whether a program's results depend on the order of its warps."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.machine.compiled.accesses import COMMUTATIVE
from gpusim.machine.compiled.kinds import ends_turn, memory_of
from gpusim.program.loops import swapping
from gpusim.program.polling import awaits


def needs_order(program: Program) -> bool:
    """Return whether results are sure to depend on the order of warps.

    Warps poll memory, retry a compare-and-swap, or change an element by several atomics, one of
    them order-dependent.
    """
    rows = program.instructions
    return awaits(program) or bool(swapping(program)) or has_several(rows, ordered(rows))


def ordered(rows: Sequence[Instruction]) -> frozenset[int]:
    """Return the order-dependent atomics: they give the old value, round, or do not commute."""
    return frozenset(
        pc for pc, row in enumerate(rows) if OPS[row.op].kind == "atomic" and _shows_order(row)
    )


def _shows_order(row: Instruction) -> bool:
    is_rounded = memory_of(row).dtype.kind == "f"
    return bool(row.dst) or row.detail not in COMMUTATIVE or is_rounded


def has_several(rows: Sequence[Instruction], ordered: frozenset[int]) -> bool:
    """Return whether several atomics may access an element, and one is order-dependent."""
    atomics = [(pc, row) for pc, row in enumerate(rows) if OPS[row.op].kind == "atomic"]
    return any(
        other != pc and memory_of(row).may_touch(memory_of(rows[pc]).places)
        for pc in ordered
        for other, row in atomics
    )


def meetings(rows: Sequence[Instruction]) -> frozenset[int]:
    """Return the accesses that all warps of a group reach before any of them executes it.

    Compiled code runs a turn warp by warp, NumPy's machine an instruction for all warps: results
    differ for two accesses of a turn to the same memory, if one of them writes.
    """
    found, since = set(), list[Instruction]()
    for pc, row in enumerate(rows):
        kind = OPS[row.op].kind
        if ends_turn(kind):
            since = []
        elif row.memory is not None and row.memory.space != "local":
            if any(_meets(one, row) for one in since):
                found.add(pc)
                since = []
            since.append(row)
    return frozenset(found)


def _meets(one: Instruction, other: Instruction) -> bool:
    """Return whether results may depend on the order of two accesses."""
    rows = one, other
    if not any(OPS[row.op].writes_memory for row in rows):
        return False
    if one.detail == other.detail and all(
        OPS[row.op].kind == "atomic" and not _shows_order(row) for row in rows
    ):
        return False
    return memory_of(one).may_touch(memory_of(other).places)
