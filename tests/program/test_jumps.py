"""Where jumps to an address in a register may lead: a function's returns behind its calls."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.program.flow import all_successors, has_computed_jumps
from gpusim.program.jumps import known_jumps
from gpusim.program.liveness import Liveness

UINT32 = np.dtype(np.uint32)
BEHIND, CONSTANT, FIRST, SECOND, ZERO, KEPT, AT = range(7)
WORD = Memory("global", "data", UINT32)
# Rows 0 to 7 of a kernel that calls a function at row 6 twice, and returns from there.
ROWS = (
    Instruction("MOV", (BEHIND,), (FIRST,), UINT32),
    Instruction("CALL.REL", target=6),
    Instruction("IMAD", (BEHIND,), (ZERO, ZERO, SECOND), UINT32),
    Instruction("CALL.REL", target=6),
    Instruction("STG", (), (AT, KEPT), memory=WORD),
    Instruction("EXIT"),
    Instruction("NOP"),
    Instruction("RET.REL", (), (BEHIND,), detail=tuple(range(8))),
)
IMMEDIATES = {FIRST: np.uint32(2 * 16), SECOND: np.uint32(4 * 16), ZERO: np.uint32(0)}


def program(*rows: Instruction) -> Program:
    return Program("kernel", rows, registers=7, immediates=IMMEDIATES)


def test_a_function_returns_behind_its_calls() -> None:
    """A register that was never set has the address 0."""
    assert known_jumps(program(*ROWS)) == {7: (0, 2, 4)}
    assert all_successors(program(*ROWS))[7] == (0, 2, 4)


def test_a_loaded_address_leads_anywhere() -> None:
    loaded = (*ROWS[:2], Instruction("LDG", (BEHIND,), (AT,), UINT32, memory=WORD), *ROWS[3:])
    assert known_jumps(program(*loaded)) == {}
    assert has_computed_jumps(program(*loaded))
    assert list(all_successors(program(*loaded))[7]) == list(range(8))


def test_an_address_that_moves_in_a_loop_leads_anywhere() -> None:
    counted = Instruction("IADD3", (BEHIND,), (BEHIND, FIRST), UINT32, "++")
    assert known_jumps(program(*ROWS[:6], counted, ROWS[7])) == {}


def test_registers_are_live_where_a_function_returns_to_them() -> None:
    live = Liveness(program(*ROWS))
    assert live.is_live(KEPT, 7)
    assert not live.is_live(CONSTANT, 7)
    assert not has_computed_jumps(program(*ROWS))
