"""Stall counts of a program made by hand, from the latencies of the H200's device file."""

from __future__ import annotations

import pytest

from gpusim.compiler.ir import BOOL, INT32
from gpusim.gpu import device
from gpusim.isa.ops import Instruction, Memory, Program
from gpusim.prediction.clock.costs import instruction_costs
from gpusim.prediction.clock.stall_counts import stall_counts

pytestmark = pytest.mark.usefixtures("both_evaluators")

DATA = Memory("global", "data", INT32)
PROGRAM = Program(
    "chain",
    (
        Instruction("IMAD", (1,), (0, 0, 0), INT32),
        Instruction("IMAD", (2,), (1, 1, 1), INT32),  # needs the one before
        Instruction(".IF", (), (2,)),
        Instruction("IMAD", (3,), (0, 0, 0), INT32),  # needs nothing
        Instruction("LDG", (4,), (5,), INT32, memory=DATA),
        Instruction("IMAD", (6,), (4, 4, 4), INT32),  # needs what is loaded
        Instruction("ISETP", (7,), (0, 0), BOOL, ("lt",)),
        Instruction("IMAD", (8,), (0, 0, 0), INT32, guard=7),  # needs the predicate
        Instruction("EXIT"),
    ),
    registers=9,
)


def test_a_stall_count_covers_fixed_latencies_and_says_what_waits_for_more() -> None:
    gpu = device.load("h200")
    found = stall_counts(PROGRAM, gpu)
    cycles = [None if count is None else count.cycles for count in found]
    assert cycles[0] == gpu.latency_cycles.imad
    assert cycles[2] is None  # it describes the source and is never issued
    assert cycles[6] == gpu.latency_cycles.predicate
    assert [pc for pc, count in enumerate(found) if count and count.waits] == [4]


def test_what_waits_for_nothing_follows_after_the_pipe_and_no_sooner_than_a_cycle() -> None:
    gpu = device.load("h200")
    found = stall_counts(PROGRAM, gpu)
    assert found[1] is not None
    assert found[1].cycles == gpu.interval_cycles.imad  # the next is another IMAD
    assert found[3] is not None
    assert found[3].cycles == 1


def test_the_codes_own_stall_counts_hold_as_well() -> None:
    gpu = device.load("h200")
    program = Program(
        "counted",
        (
            Instruction("IMAD", (1,), (0, 0, 0), INT32, stall_cycles=11),
            Instruction("IMAD", (2,), (0, 0, 0), INT32, stall_cycles=1),
            Instruction("IMAD", (3,), (2, 2, 2), INT32, stall_cycles=5),  # needs the one before
            Instruction("EXIT", stall_cycles=5),
        ),
        registers=4,
    )
    cycles = [count.cycles for count in stall_counts(program, gpu) if count is not None]
    assert cycles[:3] == [11, gpu.latency_cycles.imad, 5]


def test_an_operand_that_is_put_together_is_as_late_as_what_it_is_made_of() -> None:
    """An address of two registers, of which one comes from memory: no row for it is issued."""
    program = Program(
        "chased",
        (
            Instruction("LDG", (1,), (0,), INT32, memory=DATA),
            Instruction(".ADDRESS", (2,), (1, 3), INT32),
            Instruction(".ADDRESS", (4,), (2, 3), INT32),
            Instruction("LDG", (5,), (4,), INT32, memory=DATA),
            Instruction("LDG", (6,), (3,), INT32, memory=DATA),
            Instruction("EXIT"),
        ),
        registers=7,
        compiler="by hand",
    )
    found = stall_counts(program, device.load("h200"))
    assert [count.waits for count in found if count is not None] == [True, False, False, False]


def test_instructions_with_equal_costs_have_one_cost() -> None:
    """A result of the one is as good as one of the other: what follows is built once."""
    program = Program(
        "three",
        (
            Instruction("SHF", (1,), (0, 0), INT32),
            Instruction("LOP3", (2,), (0, 0, 0), INT32),
            Instruction("FFMA", (3,), (0, 0, 0), INT32),
            Instruction("EXIT"),
        ),
        registers=4,
    )
    shift, logic, product, _ = instruction_costs(program, device.load("h200"))
    assert shift is logic
    assert product != logic
