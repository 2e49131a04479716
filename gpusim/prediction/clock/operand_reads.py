"""How long instructions hold up what is issued because they read much of one bank of registers.

A bank of the register file gives an operand of a warp a cycle. What is issued reads its operands
before the next instruction may; one that comes every cycle to its pipe may do so a cycle later.
Loops of FFMA, IMAD, LOP3 and others in 90 orders, by 1 to 8 warps of a scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS, Instruction
from gpusim.prediction.arithmetic.ticks import TICKS


def slots_with_reads(
    instructions: Sequence[Instruction], slots: Sequence[int], is_narrow: Sequence[bool]
) -> list[int]:
    """Return, per pc, the ticks that an instruction holds its scheduler, with what it reads.

    Those of a pipe that `is_narrow` keep it for longer than the scheduler, for their `slots`, if
    they read nothing. Warps run the same code: what one has yet to read is as good as what
    another has.
    """
    free: dict[int, int] = {}  # from when on each bank is
    found, now = [], 0
    for instruction, slot, keeps in zip(instructions, slots, is_narrow, strict=True):
        there = now + slot
        for bank, reads in enumerate(instruction.bank_reads):
            if reads:
                free[bank] = max(free.get(bank, 0), now) + reads * TICKS
                there = max(there, free[bank] - (0 if keeps else TICKS))
        found.append(there - now)
        now = there if OPS[instruction.op].issued else now
    return found
