"""Control flow of programs made by hand: where lanes go on, and which registers are live."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import catalogue
from gpusim.codegen.programs import bind, program_for
from gpusim.compiler.ir import BOOL, FLOAT64, INT32
from gpusim.isa.ops import Instruction, Program
from gpusim.launch.grid import ComputeCapability
from gpusim.program.flow import leaders, successors
from gpusim.program.liveness import Liveness, live_registers

# R0 = tid; R1 = R0 < 5; @!R1 exit; loop: R3 += R3; R1 = R3 < 5; @R1 loop; R4 = (double) R3; exit
LOOP = Program(
    "loop",
    (
        Instruction("S2R", (0,), dtype=INT32, detail="tid.x"),
        Instruction("ISETP", (1,), (0, 2), BOOL, ("lt",)),
        Instruction("EXIT", guard=1, negated=True),
        Instruction("IADD3", (0,), (0, 0), INT32, "++"),
        Instruction("ISETP", (1,), (0, 2), BOOL, ("lt",)),
        Instruction("BRA", guard=1, target=3),
        Instruction("I2F", (4,), (0,), FLOAT64),
        Instruction("DADD", (5,), (4, 4), FLOAT64),
        Instruction("EXIT"),
    ),
    registers=6,
    immediates={2: np.int32(5)},
)


def test_a_guarded_exit_and_a_guarded_branch_go_on_and_an_exit_does_not() -> None:
    assert successors(LOOP) == [(1,), (2,), (3,), (4,), (5,), (3, 6), (7,), (8,), ()]


def test_basic_blocks_begin_behind_what_redirects_and_where_branches_lead() -> None:
    assert leaders(successors(LOOP)) == [0, 3, 6]


def test_predicates_and_immediates_take_no_register_and_a_double_takes_two() -> None:
    # pc 6 reads R0 for the last time and pc 7 R4: R0 is dead behind 6, where R4 is written.
    assert live_registers(LOOP) == [1, 1, 1, 1, 1, 1, 2, 2, 0]


def test_what_a_guarded_write_may_leave_stays_live_before_it() -> None:
    guarded = Program(
        "guarded",
        (
            Instruction("MOV", (0,), (9,), INT32),
            Instruction("MOV", (1,), (9,), INT32),
            Instruction("MOV", (1,), (0,), INT32, guard=2),
            Instruction("IADD3", (3,), (1, 1), INT32, "++"),
            Instruction("EXIT"),
        ),
        registers=10,
        immediates={9: np.int32(1)},
    )
    assert live_registers(guarded) == [1, 2, 1, 1, 0]


def test_what_is_written_under_a_guard_is_not_all_once_the_guard_has_changed() -> None:
    """R1 from round the loop is read by lanes for which the guard was false at its write."""
    program = Program(
        "changed",
        (
            Instruction("MOV", (1,), (9,), INT32, guard=2),
            Instruction("ISETP", (2,), (0, 9), BOOL, ("lt",)),
            Instruction("IADD3", (3,), (1, 1), INT32, "++", guard=2),
            Instruction("BRA", guard=4, target=0),
            Instruction("EXIT"),
        ),
        registers=10,
        immediates={9: np.int32(1)},
    )
    assert Liveness(program).is_live(1, 0)


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", ["reduce1", "reduce7", "naive_scan"])
def test_the_most_that_is_live_is_what_lowering_counted_on_its_own_graph(
    name: str, level: str
) -> None:
    entry = catalogue.find(name)
    call = entry.call(catalogue.sample(1024, "int32"), block=128)
    arguments = bind(call.kernel, call.arguments)
    program = program_for(call.kernel, arguments, ComputeCapability(9, 0), level)
    most = max(16, *live_registers(program))
    assert -(-most // 8) * 8 == program.register_estimate


def test_a_register_is_live_from_behind_its_first_write_to_its_last_read() -> None:
    liveness = Liveness(LOOP)
    assert [pc for pc in range(9) if liveness.is_live(0, pc)] == [1, 2, 3, 4, 5, 6]
    assert [pc for pc in range(9) if liveness.is_live(4, pc)] == [7]
    assert not any(liveness.is_live(5, pc) for pc in range(9))


def test_every_register_is_live_where_a_jump_leads_to_where_a_register_says() -> None:
    jumping = Program("jumping", (Instruction("BRX", src=(0,), detail=(0, 1)),), registers=2)
    assert Liveness(jumping).is_live(1, 0)
