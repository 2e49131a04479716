"""Stall counts of a program made by hand, from the latencies of the H200's device file."""

from __future__ import annotations

from gpusim import device
from gpusim.compiler.ir import BOOL, INT32
from gpusim.isa import Instruction, Memory, Program
from gpusim.prediction.clock.stall_counts import stall_counts

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
