"""Decisions, polls and slices of programs made by hand."""

from __future__ import annotations

import numpy as np

from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.program.decisions import decisions
from gpusim.program.flow import reachable
from gpusim.program.loops import innermost
from gpusim.program.polling import awaits, polls, spins
from gpusim.program.uses import Slices, users

INT32 = np.dtype(np.int32)
FLAG = Memory("global", "flag", INT32)
DATA = Memory("global", "data", INT32)
ADDRESS, FOUND, READY, OTHER, SUM = range(5)
LOAD = Instruction("LDG", (FOUND,), (ADDRESS,), INT32, memory=FLAG)
TEST = Instruction("ISETP", (READY,), (FOUND, OTHER), np.dtype(np.bool_), ("eq",))
BACK = Instruction("BRA", guard=READY, negated=True, target=0)
EXIT = Instruction("EXIT")


def program(*rows: Instruction) -> Program:
    return Program("kernel", rows, registers=6)


def test_a_slice_has_all_sources_of_sources_and_nothing_beside_them() -> None:
    rows = (LOAD, TEST, Instruction("IADD3", (SUM,), (OTHER, OTHER), INT32, "++"))
    assert Slices(rows).of([READY]) == {READY, FOUND, ADDRESS, OTHER}
    assert Slices(rows).of([SUM]) == {SUM, OTHER}


def test_users_are_the_readers_of_a_register_as_a_source_or_as_a_guard() -> None:
    found = users((LOAD, TEST, BACK))
    assert (found[FOUND], found[READY]) == ([1], [2])


def test_guards_and_addresses_decide_and_the_memory_that_they_come_from() -> None:
    data = Instruction("LDG", (SUM,), (ADDRESS,), INT32, memory=DATA)
    kept = Instruction("STG", (), (ADDRESS, SUM), INT32, memory=DATA)
    found = decisions(program(LOAD, TEST, BACK, data, kept, EXIT))
    assert found.registers == {READY, FOUND, OTHER, ADDRESS}
    assert found.memory == {"flag"}


def test_a_value_decides_by_way_of_memory() -> None:
    kept = Instruction("STG", (), (ADDRESS, SUM), INT32, memory=FLAG)
    assert SUM in decisions(program(kept, LOAD, TEST, BACK, EXIT)).registers


def test_a_loop_that_only_asks_for_a_flag_polls_and_spins() -> None:
    spinning = program(LOAD, TEST, BACK, EXIT)
    assert polls(spinning) == spins(spinning) == {0}


def test_a_loop_that_counts_its_tries_does_not_wait_for_others_alone() -> None:
    """Its counter decides too, so that it ends by itself: it polls, and does not spin."""
    count = Instruction("IADD3", (OTHER,), (OTHER, FOUND), INT32, "++")
    counting = program(LOAD, count, TEST, BACK, EXIT)
    assert polls(counting) == {0}
    assert spins(counting) == frozenset()


def test_a_load_at_an_address_that_moves_is_no_poll() -> None:
    step = Instruction("IADD3", (ADDRESS,), (ADDRESS, OTHER), INT32, "++")
    assert polls(program(LOAD, step, TEST, BACK, EXIT)) == frozenset()


def test_what_comes_behind_an_instruction_is_reachable_round_a_loop_but_not_past_an_exit() -> None:
    looping = program(LOAD, TEST, BACK, EXIT, LOAD)
    assert reachable(looping, 0) == {0, 1, 2, 3}
    assert reachable(looping, 3) == {4}
    assert reachable(looping, 4) == set()


def test_the_innermost_loop_is_the_one_that_begins_last() -> None:
    inner = Instruction("BRA", guard=READY, target=1)
    nested = program(LOAD, TEST, inner, BACK, EXIT)
    assert innermost(nested, 1) == range(1, 3)
    assert innermost(nested, 3) == range(4)
    assert innermost(nested, 4) is None


def test_a_poll_awaits_others_only_where_they_write_without_a_barrier() -> None:
    """A store elsewhere ends no wait; a value in shared memory comes by the barrier of its loop."""
    store = Instruction("STG", (), (ADDRESS, SUM), INT32, memory=FLAG)
    elsewhere = Instruction("STG", (), (ADDRESS, SUM), INT32, memory=DATA)
    assert awaits(program(LOAD, TEST, BACK, store, EXIT))
    assert not awaits(program(LOAD, TEST, BACK, elsewhere, EXIT))
    word = Memory("shared", "word", INT32, size=32)
    load = Instruction("LDS", (FOUND,), (ADDRESS,), INT32, memory=word)
    stored = Instruction("STS", (), (ADDRESS, SUM), INT32, memory=word)
    barrier = Instruction("BAR")
    assert awaits(program(load, TEST, BACK, stored, EXIT))
    assert not awaits(program(load, barrier, TEST, BACK, stored, EXIT))
