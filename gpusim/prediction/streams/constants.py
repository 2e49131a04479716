"""Lines of 64 bytes in constant banks that a program reads, besides the launch's own bank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.isa.ops import OPS, Instruction, Program
from gpusim.typing import Array

LINE_BYTES = 64
NOWHERE = -1
_OF_THE_LAUNCH = 0  # the bank of arguments, written at each launch
_BANK_LINES = 2**16 // LINE_BYTES


def lines(program: Program) -> list[int]:
    """Return the line read by each instruction at a fixed offset, NOWHERE if none."""
    return [_line(program, instruction) for instruction in program.instructions]


def _line(program: Program, instruction: Instruction) -> int:
    if OPS[instruction.op].kind == "bank":
        bank, offset = instruction.detail[1][:2]
        return NOWHERE if instruction.src else _line_at(bank, offset)
    words = (program.constants[r] for r in instruction.src if r in program.constants)
    return max((_line_at(bank, offset) for bank, offset in words), default=NOWHERE)


def _line_at(bank: int, offset: int) -> int:
    return NOWHERE if bank == _OF_THE_LAUNCH else bank * _BANK_LINES + offset // LINE_BYTES


def are_looked_up(program: Program) -> bool:
    """Return whether a program reads constants at offsets in registers."""
    return any(
        OPS[one.op].kind == "bank" and one.src and one.detail[1][0] != _OF_THE_LAUNCH
        for one in program.instructions
    )


def looked_up_lines(instructions: Sequence[Instruction], pcs: Array, lowest: Array) -> Array:
    """Return the lowest line of each load, by its lowest offset, -1 without an active lane."""
    banks = np.array([instructions[pc].detail[1][0] for pc in pcs.tolist()], dtype=np.int64)
    lines = np.where(lowest >= 0, banks * _BANK_LINES + lowest // LINE_BYTES, NOWHERE)
    return np.where(banks == _OF_THE_LAUNCH, NOWHERE, lines)


def lowest_line(instruction: Instruction, offsets: Array, on: Array) -> Array:
    """Return, for each warp, the lowest line read at offsets in registers."""
    bank = instruction.detail[1][0]
    if bank == _OF_THE_LAUNCH:
        return np.full((1, 1), NOWHERE)
    lowest = np.where(on, offsets, np.iinfo(np.int64).max).min(axis=2)
    return np.where(on.any(axis=2), bank * _BANK_LINES + lowest // LINE_BYTES, NOWHERE)
