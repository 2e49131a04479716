"""Issue delays by register-bank conflicts of operand reads.

A bank of the register file delivers one operand of a warp per cycle. An instruction reads its
operands before the next one may; one of a pipe with one instruction per cycle a cycle later. Loops
of FFMA, IMAD, LOP3 and others in 90 orders, by 1 to 8 warps of a scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.isa.ops import OPS, Instruction
from gpusim.prediction.arithmetic.ticks import TICKS


def slots_with_reads(
    instructions: Sequence[Instruction], slots: Sequence[int], is_narrow: Sequence[bool]
) -> list[int]:
    """Return the ticks of each instruction in its scheduler, including operand reads, by pc.

    An `is_narrow` pipe is occupied longer than the scheduler; `slots` are the ticks without operand
    reads. Warps run the same code, so that the pending reads of one represent those of another.
    """
    free: dict[int, int] = {}  # by bank: the time from which on it is free
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
