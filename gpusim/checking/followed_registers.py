"""Instructions whose operands a check needs to follow values from uninitialised memory."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.checking.origins import SWAPS
from gpusim.isa.ops import OPS, Instruction, Program

# Their steps are not reported.
_UNREPORTED = ("bounds",)


def followed_registers(
    program: Program, *, has_empty_arrays: bool
) -> Mapping[int, tuple[int, ...]]:
    """Return the instructions that read or set possibly unknown registers, by pc.

    Each has the registers whose values decide which bits of its results are unknown. Loads begin
    them: of memory of threads and blocks, and of global memory if it `has_empty_arrays`.
    """
    rows = program.instructions
    unknown = {register for row in rows if _begins(row, has_empty_arrays) for register in row.dst}
    is_growing = True
    while is_growing:
        before = len(unknown)
        for row in rows:
            if not unknown.isdisjoint((*row.src, row.guard)):
                unknown.update(row.dst)
        is_growing = len(unknown) > before
    return {
        pc: () if unknown.isdisjoint(row.src) and not _begins(row, has_empty_arrays) else row.src
        for pc, row in enumerate(rows)
        if OPS[row.op].kind not in _UNREPORTED
        and not unknown.isdisjoint((*row.src, *row.dst, row.guard))
    }


def _begins(row: Instruction, has_empty_arrays: bool) -> bool:
    """Return whether a row may load an element that was never written."""
    kind = OPS[row.op].kind
    if row.memory is None or not (kind == "load" or (kind == "atomic" and row.detail in SWAPS)):
        return False
    return has_empty_arrays or row.memory.space != "global"
