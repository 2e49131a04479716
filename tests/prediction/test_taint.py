"""What decides addresses and control flow: found in the order in which instructions run."""

import numpy as np

from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.program.taint import data_dependent_lines

ADDRESS, VALUE, CONDITION, OTHER = range(4)
DATA = Memory("global", "data", np.dtype(np.int32))
OUT = Memory("global", "out", np.dtype(np.int32))
LOAD = Instruction("LDG", (VALUE,), (ADDRESS,), memory=DATA, line=1)
STORE = Instruction("STG", (), (VALUE, OTHER), memory=OUT, line=3)
EXIT = Instruction("EXIT", line=9)


def lines_of(*instructions: Instruction) -> list[int]:
    return data_dependent_lines(Program("kernel", instructions, 4), {"data"})


def moved(guard: int | None = None, *, negated: bool = False) -> Instruction:
    return Instruction("MOV", (VALUE,), (OTHER,), guard=guard, negated=negated, line=2)


def stored(guard: int | None = None, *, negated: bool = False) -> Instruction:
    return Instruction("STG", (), (VALUE, OTHER), guard=guard, negated=negated, memory=OUT, line=3)


def test_an_element_decides_where_a_store_goes() -> None:
    assert lines_of(LOAD, STORE, EXIT) == [3]


def test_a_register_is_free_again_for_addresses_of_its_own() -> None:
    assert lines_of(LOAD, moved(), STORE, EXIT) == []


def test_what_some_lanes_have_moved_is_known_to_these_alone() -> None:
    assert lines_of(LOAD, moved(CONDITION), stored(CONDITION), EXIT) == []
    assert lines_of(LOAD, moved(CONDITION), stored(CONDITION, negated=True), EXIT) == [3]
    assert lines_of(LOAD, moved(CONDITION), stored(), EXIT) == [3]


def test_a_guard_that_is_written_anew_names_other_lanes() -> None:
    compared = Instruction("ISETP", (CONDITION,), (OTHER, OTHER), np.dtype(np.int32), "LT")
    assert lines_of(LOAD, moved(CONDITION), compared, stored(CONDITION), EXIT) == [3]


def test_an_element_decides_in_the_next_iteration() -> None:
    back = Instruction("BRA", target=0, guard=CONDITION, line=5)
    assert lines_of(STORE, LOAD, back, EXIT) == [3]
    assert lines_of(STORE, LOAD, moved(), back, EXIT) == []


def test_what_is_stored_decides_where_it_is_read_again() -> None:
    kept = Memory("shared", "kept", np.dtype(np.int32))
    put = Instruction("STS", (), (ADDRESS, VALUE), memory=kept, line=6)
    taken = Instruction("LDS", (OTHER,), (ADDRESS,), memory=kept, line=7)
    gone = Instruction("STG", (), (OTHER, ADDRESS), memory=OUT, line=8)
    assert lines_of(LOAD, put, taken, gone, EXIT) == [8]
    assert lines_of(LOAD, taken, gone, EXIT) == []
