"""Loads of two bytes for one of them: atomic loads of a byte in machine code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from gpusim.host.kept import once
from gpusim.isa.ops import Instruction, Program
from gpusim.program.uses import users

BITWISE, AND = ("bits.LOP3", "bits.ULOP3"), (0xC0,)
COPIES = ("bits.MOV", "bits.UMOV", ".ADDRESS")
EVEN = 0xFFFFFFFE


@once
def rounded_loads(program: Program) -> Mapping[int, int]:
    """Return the loads around a byte by pc, with the register of the byte's own address.

    The address is rounded down to an even one, and a shift takes the byte out of the result.
    """
    rows = program.instructions
    pairs = [
        pc
        for pc, row in enumerate(rows)
        if row.is_load and row.memory is not None and row.memory.width_bytes == 2 and row.dst
    ]
    if not pairs:
        return {}
    used, makers = users(rows), defaultdict[int, list[Instruction]](list)
    for row in rows:
        for register in row.dst:
            makers[register].append(row)
    found: dict[int, int] = {}
    for pc in pairs:
        takes = [rows[user].op.startswith("bits.SHF.R") for user in used[rows[pc].dst[0]]]
        address = _before_rounding(program, makers, rows[pc].src[0])
        if takes and all(takes) and address is not None and max(used[address]) > pc:
            found[pc] = address
    return found


def _before_rounding(
    program: Program, makers: Mapping[int, list[Instruction]], register: int
) -> int | None:
    """Return the register that an address is rounded down from to an even one, None without."""
    while len(made := makers.get(register, [])) == 1:
        (row,) = made
        if row.op in BITWISE and row.detail.numbers == AND:
            return row.src[0] if program.immediates.get(row.src[1]) == EVEN else None
        is_move = row.op == "bits.IMAD" and program.immediates.get(row.src[0]) == 0
        if row.op not in COPIES and not is_move:
            return None
        register = row.src[2] if is_move else row.src[0]
    return None
