"""Whether the order of a program's warps shows in its results."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.machine.compiled.accesses import COMMUTATIVE
from gpusim.machine.compiled.kinds import ends_turn, memory_of
from gpusim.program.loops import swapping
from gpusim.program.polling import awaits


def needs_order(program: Program) -> bool:
    """Return whether the order of warps shows for sure.

    Warps wait for others elsewhere than at barriers, or swap until they get through, or an element
    is changed by several atomics of which one shows its order.
    """
    rows = program.instructions
    return awaits(program) or bool(swapping(program)) or has_several(rows, ordered(rows))


def ordered(rows: Sequence[Instruction]) -> frozenset[int]:
    """Return the atomics that show their order: they give the old value, or rounded sums."""
    return frozenset(
        pc for pc, row in enumerate(rows) if OPS[row.op].kind == "atomic" and _shows_order(row)
    )


def _shows_order(row: Instruction) -> bool:
    is_rounded = memory_of(row).dtype.kind == "f"
    return bool(row.dst) or row.detail not in COMMUTATIVE or is_rounded


def has_several(rows: Sequence[Instruction], ordered: frozenset[int]) -> bool:
    """Return whether several atomics may access an element, and one shows their order."""
    atomics = [(pc, row) for pc, row in enumerate(rows) if OPS[row.op].kind == "atomic"]
    return any(
        other != pc and memory_of(row).may_touch(memory_of(rows[pc]).places)
        for pc in ordered
        for other, row in atomics
    )


def meetings(rows: Sequence[Instruction]) -> frozenset[int]:
    """Return the accesses that all warps of a group come to before any of them makes its own.

    Warps run a turn one after the other, and NumPy's machine an instruction for all of them: that
    shows between two accesses of a turn to the same memory, if one of them writes.
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
    """Return whether the order of two accesses may show."""
    rows = one, other
    if not any(OPS[row.op].writes_memory for row in rows):
        return False
    if one.detail == other.detail and all(
        OPS[row.op].kind == "atomic" and not _shows_order(row) for row in rows
    ):
        return False
    return memory_of(one).may_touch(memory_of(other).places)
