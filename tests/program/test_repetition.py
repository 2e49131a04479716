"""Loops with iterations that may be known to be alike, and loops in which none can be known."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.program.repetition import may_repeat

INT32 = np.dtype(np.int32)
DATA = Memory("global", "data", INT32)
AT, FOUND, GOES_ON, COUNT, LIMIT, SUM = range(6)
LOAD = Instruction("LDG", (FOUND,), (AT,), INT32, memory=DATA)
FOLLOW = Instruction("LDG", (AT,), (AT,), INT32, memory=DATA)
ADD = Instruction("IADD3", (SUM,), (SUM, FOUND), INT32, "++")
STEP = Instruction("IADD3", (COUNT,), (COUNT, LIMIT), INT32, "++")
EXIT = Instruction("EXIT")


def compared(register: int) -> Instruction:
    return Instruction("ISETP", (GOES_ON,), (register, LIMIT), np.dtype(np.bool_), ("lt",))


def branch(target: int) -> Instruction:
    return Instruction("BRA", guard=GOES_ON, target=target)


def program(*rows: Instruction) -> Program:
    return Program("kernel", (*rows, EXIT), registers=6)


COUNTED = (LOAD, ADD, STEP, compared(COUNT), branch(0))


def test_a_counted_loop_may_repeat_whatever_it_adds() -> None:
    assert may_repeat(program(*COUNTED))


def test_a_program_without_a_loop_has_nothing_that_repeats() -> None:
    assert not may_repeat(program(LOAD, ADD))


def test_a_loop_that_ends_by_what_it_loads_does_not_repeat() -> None:
    assert not may_repeat(program(LOAD, compared(FOUND), branch(0)))


def test_a_loop_that_loads_where_it_loads_next_does_not_repeat() -> None:
    """Its end is counted: the address is that of the iteration before."""
    chased = (FOLLOW, LOAD, STEP, compared(COUNT), branch(0))
    assert not may_repeat(program(*chased))


def test_a_value_loaded_before_the_loop_is_known_in_it() -> None:
    loop = (ADD, STEP, compared(FOUND), branch(1))
    assert may_repeat(program(LOAD, *loop))


def test_a_register_that_is_written_anew_is_known_again() -> None:
    """What was loaded into the address is replaced before anything is loaded from there."""
    again = Instruction("IADD3", (AT,), (COUNT, LIMIT), INT32, "++")
    assert may_repeat(program(FOLLOW, again, LOAD, STEP, compared(COUNT), branch(0)))


def test_a_load_on_one_of_two_paths_says_nothing_of_each_iteration() -> None:
    around = Instruction("BRA", guard=GOES_ON, target=2)
    assert may_repeat(program(around, FOLLOW, STEP, compared(COUNT), branch(0)))


def test_a_loop_around_one_that_does_not_repeat_does_not_either() -> None:
    inner = (LOAD, compared(FOUND), branch(0))
    assert not may_repeat(program(*inner, STEP, compared(COUNT), branch(0)))


def test_one_loop_that_may_repeat_is_enough() -> None:
    second = (LOAD, ADD, STEP, compared(COUNT), branch(3))
    assert may_repeat(program(LOAD, compared(FOUND), branch(0), *second))
